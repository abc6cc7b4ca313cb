"""Formats of one line carry the values that differ; what a change accounts for is not called accepted."""

import msgspec
import pytest

from goldentrace.model.report import Report
from goldentrace.report import render
from tests.report import scenes


def changed(expected: object, actual: object) -> Report:
    trace = scenes.argument_changed()
    assert trace.comparison is not None
    change = trace.comparison.changes[0]
    change.expected, change.actual = expected, actual
    return Report("check", [trace])


@pytest.mark.parametrize("name", ["concise", "github"])
def test_a_line_says_both_values(name: str) -> None:
    line = render(changed(4999, 49990), name).splitlines()[0]
    assert "differs: 4999 -> 49990" in line


@pytest.mark.parametrize("name", ["concise", "github"])
def test_values_are_safe_and_cut(name: str) -> None:
    line = render(changed("\x1b[31m\u202e", "x" * 500), name).splitlines()[0]
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert "x" * 50 in line
    assert "x" * 60 not in line


def test_a_finding_that_a_change_explains_is_not_called_accepted() -> None:
    trace = scenes.findings()
    assert trace.lint is not None
    lint = msgspec.structs.replace(trace.lint, findings=[msgspec.structs.replace(f, accepted="explained by GT101 arguments-changed at a#1")
                                         for f in trace.lint.findings])  # fmt: skip
    trace.lint = lint
    text = render(Report("check", [trace]), "text")
    assert f"{len(lint.findings)} findings explained by GT101" in text
    assert "accepted" not in text
    full = render(Report("check", [trace]), "text", verbosity=1)
    assert "explained by GT101 arguments-changed at a#1" in full
    assert "accepted:" not in full
