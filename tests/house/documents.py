r"""Commands in Markdown that the tests run, so that no page shows what does not work.

A page tells one story: its blocks are run in order, in one new folder and one shell, with the installed `goldentrace`.

- A block marked `console`: a line that begins with `$ ` is a command (`\\` at its end goes on in the next line). It must end
  with exit code 0, or with N where the line ends in `# exit N`. The lines below it are what it prints: each must appear in
  its output, in that order; `…` stands for anything.
- A block of another kind with `title="NAME"`: the file NAME is written with that text before the next command.
- A block marked `sh` is not run: only for commands that install goldentrace or that run these tests.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w*)(?P<rest>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```\s*$", re.MULTILINE | re.DOTALL
)
TITLE = re.compile(r'\btitle="([^"]+)"')
EXIT = re.compile(r"\s+# exit (\d+)$")
END = "~~ end of command"


@dataclass
class Command:
    """One command of a page: 1-based line, what the shell gets, the exit code and the lines of output that are promised."""

    line: int
    text: str
    code: int = 0
    output: list[str] = field(default_factory=list)


@dataclass
class File:
    """A file that a page shows and later commands need."""

    line: int
    name: str
    body: str


@dataclass
class Unrun:
    """A line of a block marked `sh`."""

    line: int
    text: str


def steps(page: str) -> Iterator[Command | File | Unrun]:
    """Yield what the blocks of a page hold, in order."""
    for fence in FENCE.finditer(page):
        first = page.count("\n", 0, fence.start("body")) + 1
        indent = len(fence["indent"])
        lines = [line[indent:] for line in fence["body"].splitlines()]
        title = TITLE.search(fence["rest"])
        if fence["kind"] == "console":
            yield from commands(lines, first)
        elif title:
            yield File(first, title[1], "".join(line + "\n" for line in lines))
        elif fence["kind"] in ("sh", "bash", "shell"):
            yield from (Unrun(first + index, line) for index, line in enumerate(lines) if line.strip())


def commands(lines: list[str], first: int) -> Iterator[Command]:
    """Yield the commands of one block with the output lines that follow each."""
    current: Command | None = None
    is_open = False
    for number, line in enumerate(lines, start=first):
        if is_open and current:
            current.text += "\n" + line
        elif line.startswith("$ "):
            if current:
                yield current
            current = Command(number, line.removeprefix("$ "))
        elif current and line.strip():
            current.output.append(line)
        is_open = line.endswith("\\")
        if current and not is_open and (expected := EXIT.search(current.text)):
            current.text, current.code = current.text[: expected.start()], int(expected[1])
    if current:
        yield current


def missing_lines(promised: list[str], printed: str) -> list[str]:
    """Return the promised lines that do not appear in the output in that order."""
    lines = iter(printed.splitlines())
    missing = []
    for line in promised:
        pattern = re.compile(".*".join(re.escape(part) for part in line.rstrip().split("…")) + r"\s*")
        if not any(pattern.fullmatch(candidate) for candidate in lines):
            missing.append(line)
    return missing


def run_page(page: str, folder: Path, env: dict[str, str], timeout_s: float = 120) -> list[str]:
    """Run the commands of a page in `folder` and return what went other than it says, one text per command."""
    todo = list(steps(page))
    script = ["cd " + shlex.quote(str(folder))]
    expected = []
    for step in todo:
        if isinstance(step, File):
            name = shlex.quote(step.name)
            script.append(f"mkdir -p \"$(dirname {name})\"\ncat >{name} <<'{END}'\n{step.body}{END}")
        elif isinstance(step, Command):
            expected.append(step)
            script.append(f"{{ {step.text}\n}} </dev/null\nprintf '\\n%s %d\\n' '{END}' $?")
    done = subprocess.run(
        ["bash"],
        input="\n".join(script),
        env=env,
        timeout=timeout_s,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    outputs = re.split(rf"\n{END} (\d+)\n", done.stdout)
    problems = []
    for index, command in enumerate(expected):
        at = f"line {command.line}: {command.text}"
        if 2 * index + 1 >= len(outputs):
            problems.append(f"{at}\n  the shell ended before it was done:\n{outputs[-1]}")
            break
        printed, code = outputs[2 * index], int(outputs[2 * index + 1])
        if code != command.code:
            problems.append(f"{at}\n  ended with {code}, not {command.code}:\n{printed}")
        elif missing := missing_lines(command.output, printed):
            problems.append(f"{at}\n  did not print {missing[0]!r} (in this order):\n{printed}")
    return problems
