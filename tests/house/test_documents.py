"""Every command in README and the other pages runs, ends as the page says and prints what the page shows."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.house.documents import Command, Unrun, run_page, steps
from tests.house.tracked import ROOT, tracked

PAGES = [path for path in tracked("*.md") if path.parts[0] != "tests"]
UNRUN = re.compile(r"(?:bash (?P<script>ci/[\w/-]+)( .*)?|(?:pip|pipx|uv tool) install .+|git clone .+|cd [\w/-]+|#.*)")


def shell_environment(home: Path) -> dict[str, str]:
    """Return the environment of a page's shell: the installed commands first, nothing of this machine's settings."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG") if name in os.environ}
    git = {
        f"GIT_{who}_{what}": f"a@{who.lower()}.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return kept | git | {"PATH": f"{Path(sys.executable).parent}:{kept['PATH']}", "HOME": str(home)}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    text = (ROOT / page).read_text()
    if not any(isinstance(step, Command) for step in steps(text)):
        return  # a page of prose; the next test sees to what its other blocks may hold
    folder, home = tmp_path / "folder", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    problems = run_page(text, folder, shell_environment(home))
    assert not problems, "\n".join(f"{page} {problem}" for problem in problems)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_what_is_not_run_is_an_installation_or_a_script_of_ci(page: Path) -> None:
    for step in steps((ROOT / page).read_text()):
        if isinstance(step, Unrun):
            allowed = UNRUN.fullmatch(step.text.strip())
            assert allowed, f"{page}:{step.line}: mark the block `console`, so that the tests run it: {step.text}"
            assert allowed["script"] is None or (ROOT / allowed["script"]).is_file(), (
                f"{page}:{step.line}: no such script"
            )


def test_readme_names_the_two_commands() -> None:
    shown = [step.text for step in steps((ROOT / "README.md").read_text()) if isinstance(step, Unrun)]
    assert {"bash ci/demo", "bash ci/test"} <= {text.split("#")[0].strip() for text in shown}


PAGE = """
```yaml title="made/hello.txt"
hello there
```

```console
$ cd made && cat hello.txt
hello…
$ pwd | \\
    sed 's,.*/,,'
made
$ (exit 2)  # exit 2
```
"""


def test_a_page_is_one_story_in_one_folder(tmp_path: Path) -> None:
    assert run_page(PAGE, tmp_path, shell_environment(tmp_path)) == []


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("$ false", "line 2: false\n  ended with 1, not 0"),
        ("$ true # exit 3", "line 2: true\n  ended with 0, not 3"),
        ("$ echo one; echo two\ntwo\none", "did not print 'one'"),
        ("$ exit 0", "the shell ended before it was done"),
        ("$ goldentrace-that-is-not-there", "ended with 127"),
    ],
)
def test_a_page_that_is_wrong_is_found(block: str, problem: str, tmp_path: Path) -> None:
    found = run_page(f"```console\n{block}\n```\n", tmp_path, shell_environment(tmp_path))
    assert len(found) == 1
    assert problem in found[0]
