"""`goldentrace demo`: the first minute. Records a bundled agent, runs it again, breaks it three times; offline.

The story is told by the commands themselves, run here one after the other, and what each must come to is fixed in one
table. This module must not render a verdict of its own.
"""

import contextlib
import importlib.resources
import io
import json
import os
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from goldentrace.cli.options import output_options
from goldentrace.cli.output import Output
from goldentrace.cli.terminal import width_of
from goldentrace.codec.config import CONFIG_NAME
from goldentrace.errors import ConfigError, InfrastructureError, Where
from goldentrace.exitcodes import CHANGED, OK
from goldentrace.store.atomic import write_atomically
from goldentrace.store.layout import make_folder

FOLDER: Final = "goldentrace-demo"
AGENT: Final = "agent.py"
SUITE: Final = "refund"
INDENT: Final = "   "
PYTHON: Final = "python"
"""The word that the example's configuration starts its agent with."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A broken agent, at most ten lines from the correct one. first: the code that its report must begin with."""

    name: str
    scenario: str
    what: str
    first: str


VARIANTS: Final = (
    Variant("ignores_retry_after", "429-then-success", "it asks again after 0.2 s, the service said 1 s", "GT402"),
    Variant("new_key_on_retry", "503-then-success", "it makes a new idempotency key to retry, and pays twice", "GT109"),
    Variant("forgets_to_look", "lost-response", "the response is lost, it says refunded and never looks", "GT203"),
)

OPENING: Final = (
    "A refund agent on bad days, offline: it looks an order up, refunds it and tells the customer (agent.py). Its "
    "tools are a real HTTP server on this machine, which asks it to wait (429 with Retry-After), fails (503), or does "
    "the work and loses the response."
)
MEANINGS: Final = {CHANGED: ": behaviour changed, CI stops here"}
LOOK: Final = (
    ("goldentrace diff", "the changes, in full"),
    (f"goldentrace show goldens/{SUITE}/lost-response.jsonl", "a golden, to read"),
    ("goldentrace explain GT402", "what a code means"),
    (f"diff {AGENT} broken/new_key_on_retry.py", "how little it takes"),
)


@click.command()
@click.argument("folder", metavar="[DIR]", default=FOLDER)
@output_options()
def demo(folder: str, output: Output) -> int:
    """See it work, offline: record an example agent, run it again, break it three times.

    The example is copied into DIR (default: goldentrace-demo), which must be new or empty, and stays there to play
    with. Exit code: 0 if all went as told, 3 if not.
    """
    place = copy_example(Path(folder))
    story = Story(output, folder)
    with _inside(place):
        story.tell()
    if output.format == "json":
        output.put_json({"command": "demo", "folder": str(place), "steps": story.steps, "exit_code": OK})
    return OK


# -- the folder --------------------------------------------------------------------------------------------------------


def copy_example(folder: Path) -> Path:
    """Copy the example into a new or empty folder and return its absolute path.

    Raises: ConfigError where something is there already, InfrastructureError where it cannot be written.
    """
    place = folder.absolute()
    try:
        is_taken = place.exists() and (not place.is_dir() or any(place.iterdir()))
        if is_taken:
            raise ConfigError(
                "there is something already, and nothing is overwritten", where=Where(str(folder)),
                next_step="name a new folder: goldentrace demo DIR",
            )  # fmt: skip
        make_folder(place)
        with importlib.resources.as_file(importlib.resources.files("goldentrace") / "demo") as example:
            shutil.copytree(
                example, place, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile,
                dirs_exist_ok=True,
            )  # fmt: skip
    except OSError as error:  # shutil.Error is one too, with a list in place of a text
        raise InfrastructureError(
            f"the example cannot be copied: {error.strerror or error}", where=Where(str(folder)),
            next_step="name a folder that can be written: goldentrace demo DIR",
        ) from None  # fmt: skip
    _name_interpreter(place / CONFIG_NAME)
    return place


def _name_interpreter(config: Path) -> None:
    """Have the example's commands start this Python, where `python` is another one: that may lack goldentrace."""
    if _is_first_on_path(Path(sys.executable).parent, PYTHON):
        return
    text = config.read_text("utf-8")
    command = json.dumps([sys.executable, AGENT])  # JSON is YAML, whatever the path holds
    write_atomically(config, text.replace(f"command: {PYTHON} {AGENT}", f"command: {command}").encode())


def _is_first_on_path(folder: Path, program: str) -> bool:
    """Is the program of that folder the one that a shell would start?"""
    found = shutil.which(program)
    return found is not None and Path(found).parent == folder


@contextlib.contextmanager
def _inside(place: Path) -> Iterator[None]:
    """Stand in the folder, without the settings of another project, and leave the correct agent behind."""
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("GOLDENTRACE_")}
    correct = (place / AGENT).read_bytes()
    try:
        with contextlib.chdir(place):
            yield
    finally:
        os.environ.update(kept)
        write_atomically(place / AGENT, correct)


# -- the story ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command came to. codes: of its report, in order."""

    code: int
    stdout: str
    stderr: str
    codes: tuple[str, ...] = ()


class Story:
    """Tells each step as it happens, and stops where one comes to something else than told."""

    def __init__(self, output: Output, shown: str) -> None:
        """shown: the folder, as the user named it."""
        self.output = output
        self.shown = shown
        self.width = width_of(output.width)
        self.steps: list[dict[str, Any]] = []

    def tell(self) -> None:
        """Raises: InfrastructureError where a step went otherwise."""
        self._say(OPENING, "")
        self._head("1. Record what the agent does today.")
        self._step(["record", SUITE, "-q"], OK)
        self._head("2. Run it again: new ids, another clock, the same behaviour.")
        self._step(["check"], OK)
        for number, variant in enumerate(VARIANTS, start=3):
            self._head(f"{number}. Break it: {variant.what}.")
            source = Path("broken", f"{variant.name}.py")
            self._say(f"$ cp {source} {AGENT}")
            shutil.copyfile(source, AGENT)
            self._step(["check", variant.scenario, "--output-format", "concise"], CHANGED, variant.first)
        self._end()

    def _step(self, words: Sequence[str], expected: int, first: str | None = None) -> None:
        """Run a command and show what it prints. first: the code that its report must begin with."""
        command = " ".join(("goldentrace", *words))
        self._say(f"$ {command}")
        ran = _run(words, width=self.width - len(INDENT))
        self.steps.append({"command": command, "exit_code": ran.code, "codes": list(ran.codes)})
        is_told = ran.code == expected and (first is None or ran.codes[:1] == (first,))
        if self.output.verbosity >= 0:
            for line in filter(None, ran.stdout.splitlines()):
                self._say(line)
        self._say(f"exit code {ran.code}{MEANINGS.get(ran.code, '')}")
        if not is_told:
            self.output.say(ran.stderr.rstrip("\n"), level=-1)
            came = f"exit code {ran.code}{''.join(f' {code}' for code in ran.codes[:1])}"
            told = f"{expected}{f' {first}' if first else ''}"
            raise InfrastructureError(
                f"the demo went otherwise than told: `{command}` came to {came}, not {told}",
                where=Where(self.shown),
                next_step="on a very busy machine run it again in a new folder; else report this as a defect",
            )

    def _head(self, text: str) -> None:
        self._put("")
        self._say(text, "")

    def _end(self) -> None:
        self._head("All as it should be. The folder is yours, with the correct agent in place:")
        programs = Path(sys.executable).parent
        if not _is_first_on_path(programs, "goldentrace"):
            self._put(f"{INDENT}export PATH={shlex.quote(str(programs))}:$PATH")
        self._put(f"{INDENT}cd {shlex.quote(self.shown)}")
        widest = max(len(command) for command, _ in LOOK)
        for command, what in LOOK:
            self._put(f"{INDENT}{command.ljust(widest)}  # {what}")
        self._say(f"Then change {AGENT} or faults/*.yaml, and ask: goldentrace check")

    def _say(self, text: str, indent: str = INDENT) -> None:
        """Write a line, wrapped at the width; what it continues on stands further in."""
        inner = text[: len(text) - len(text.lstrip())]
        lines = textwrap.wrap(
            text, self.width, initial_indent=indent, subsequent_indent=f"{indent}{inner}{'  ' if indent else ''}",
            break_long_words=False, break_on_hyphens=False, drop_whitespace=True, replace_whitespace=False,
        )  # fmt: skip
        for line in lines or [""]:
            self._put(line)

    def _put(self, line: str) -> None:
        if self.output.format != "json":
            self.output.put_lines([line])


def _run(words: Sequence[str], *, width: int) -> Ran:
    """Run a command in this process, as the command line would, and return what it printed.

    Shown without three options: `--width`, because its lines are indented here; `--write-in-ci`, because a folder of
    its own is not what CI protects; `--report`, which the codes are read from. Raises: what the command raises.
    """
    from goldentrace.cli.commands import run_command

    stdout, stderr = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.json")
        more = ["--width", str(max(40, width)), "--color", "never"]
        more += ["--report", f"json={report}"] if words[0] == "check" else ["--write-in-ci"]
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            code = run_command([*words, *more])
        codes = _codes(report)
    return Ran(code, stdout.getvalue(), stderr.getvalue(), codes)


def _codes(report: Path) -> tuple[str, ...]:
    if not report.exists():
        return ()
    document = json.loads(report.read_bytes())
    return tuple(finding["rule"] for trace in document["traces"] for finding in trace["findings"])
