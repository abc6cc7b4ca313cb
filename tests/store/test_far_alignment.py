"""Alignment by git: as many pairs as the exact one, and none where git cannot."""

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from goldentrace.match.sequences import align
from goldentrace.store import far_alignment
from goldentrace.store.far_alignment import align_far


def drawn(seed: int, most: int, letters: int) -> tuple[list[int], list[int]]:
    draw = random.Random(seed)
    golden = [draw.randrange(letters) for _ in range(draw.randrange(most))]
    candidate = list(golden)
    for _ in range(draw.randrange(12)):
        place = draw.randrange(len(candidate) + 1)
        if draw.random() < 0.5:
            candidate.insert(place, draw.randrange(letters + 2))
        else:
            del candidate[place : place + 1]
    return golden, candidate


@pytest.mark.parametrize("seed", range(24))
def test_as_many_pairs_as_the_exact_alignment(seed: int) -> None:
    golden, candidate = drawn(seed, 60, 2 + seed % 5)
    found = align_far(golden, candidate)
    assert found is not None
    pairs, is_exact = found
    assert is_exact
    assert len(pairs) == len(align(golden, candidate)[0])
    assert all(golden[g] == candidate[c] for g, c in pairs)
    assert pairs == sorted(set(pairs))
    assert len({c for _, c in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("golden", "candidate", "pairs"),
    [
        ([1, 2, 3], [1, 2, 3], [(0, 0), (1, 1), (2, 2)]),
        ([], [1], []),
        ([1], [], []),
        ([], [], []),
        ([1, 2], [3, 4], []),
        ([1, 2, 3], [2, 3], [(1, 0), (2, 1)]),
        ([2, 3], [1, 2, 3, 4], [(0, 1), (1, 2)]),
        ([1, 9, 9, 2], [1, 2], [(0, 0), (3, 1)]),
    ],
)
def test_ends_and_empty_sides(golden: list[int], candidate: list[int], pairs: list[tuple[int, int]]) -> None:
    assert align_far(golden, candidate) == (pairs, True)


def test_the_users_own_git_settings_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitconfig").write_text("[diff]\n  external = false\n  noprefix = true\n[color]\n  ui = always\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert align_far([1, 2, 3], [1, 3]) == ([(0, 0), (2, 1)], True)


def test_without_git_there_is_no_alignment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert align_far([1], [2]) is None


def a_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = tmp_path / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


@pytest.mark.parametrize("script", ["exit 128", "echo warning >&2; exit 1"])
def test_where_git_fails_or_complains_there_is_no_alignment(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_git(tmp_path, monkeypatch, script)
    assert align_far([1], [2]) is None


def test_where_the_minimal_alignment_takes_too_long_another_one_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    run = subprocess.run

    def slow(command: list[str], **options: Any) -> Any:
        asked.append("--minimal" in command)
        if asked[-1]:
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return run(command, **options)

    monkeypatch.setattr(far_alignment.subprocess, "run", slow)
    assert align_far([1, 2, 3], [1, 3]) == ([(0, 0), (2, 1)], False)
    assert asked == [True, False]


def test_where_every_alignment_takes_too_long_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(command: list[str], **options: Any) -> Any:
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(far_alignment.subprocess, "run", never)
    assert align_far([1], [2]) is None
