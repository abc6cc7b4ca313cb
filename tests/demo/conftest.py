"""The example as the tests of it use it: run once, in a process of its own, then looked at."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import KEPT_VARIABLES, Finished, text

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PROGRAM = BIN / "goldentrace"

Run = Callable[..., Finished]


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return a bare environment in which `python` is this one."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return kept | {"HOME": str(home), "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"} | more


def goldentrace(*words: str, cwd: Path, env: dict[str, str]) -> Finished:
    """Run the installed command line to its end."""
    done = subprocess.run(
        [PROGRAM, *words], check=False, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    return Finished(done.returncode, text(done.stdout), text(done.stderr))


@dataclass(frozen=True)
class Told:
    """The story, told once: what was printed, and the folder that it left."""

    done: Finished
    folder: Path
    env: dict[str, str]

    def run(self, *words: str) -> Finished:
        return goldentrace(*words, cwd=self.folder, env=self.env)


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Tell the story where little helps: in CI, behind a proxy that is not there, with settings of another project."""
    place = tmp_path_factory.mktemp("demo")
    env = environment(place)
    proxy = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"), "http://127.0.0.1:9")
    odd = {"CI": "true", "GOLDENTRACE_OPT_PROFILE": "nobody-has-it", "GOLDENTRACE_TRACE": str(place / "other.jsonl")}
    done = goldentrace("demo", "first look", cwd=place, env=env | proxy | odd)
    return Told(done, place / "first look", env)


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what this project gates itself with, so that a test writes nothing into the checkout."""
    place = tmp_path_factory.mktemp("checkout")
    shutil.copy(ROOT / "pyproject.toml", place)
    shutil.copytree(ROOT / "goldens", place / "goldens")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "goldentrace" / "demo", place / "goldentrace" / "demo", ignore=ignored)
    return place
