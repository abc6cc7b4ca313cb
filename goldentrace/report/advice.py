"""What to write in a profile where a change or a finding is meant: the end of the report for a person at a terminal."""

import json
import shlex
from typing import Final

from goldentrace.model.finding import Finding
from goldentrace.model.report import TraceReport
from goldentrace.report.block import SETTING
from goldentrace.report.json_document import counted
from goldentrace.report.page import Page

MAX_ENTRIES: Final = 3
SHIPPED: Final = ("default", "lenient", "strict")
"""Profiles that come with the package: nobody's to change."""


def as_arguments(names: list[str]) -> list[str]:
    """Return names as arguments of a command, where one may look like an option."""
    return ["--", *names] if any(name.startswith("-") for name in names) else names


def add_masking(page: Page, changed: list[TraceReport], options: tuple[str, ...]) -> None:
    """Add where the setting of a hint is written, once for all hints: a setting alone helps nobody find its file."""
    hinted = [
        trace
        for trace in changed
        if trace.comparison is not None and any(SETTING in (change.hint or "") for change in trace.comparison.changes)
    ]
    if not hinted:
        return
    assert hinted[0].comparison is not None
    base = hinted[0].comparison.golden.header.profile
    stem, _, number = base.rpartition("@")
    if stem in SHIPPED:  # frozen: an own one extends it
        words = f"to normalizers/NAME@1.yaml, with `name: NAME@1` and `extends: {base}`"
        named = "NAME@1"
    else:
        named = f"{stem}@{int(number) + 1}" if number.isdigit() else base
        words = f"to normalizers/{named}.yaml, with `name: {named}` and what normalizers/{base}.yaml holds"
    names = as_arguments([trace.name for trace in hinted])
    again = shlex.join(["goldentrace", "record", *options, *names])
    page.wrapped(f"write the setting of the hint {words}", indent=11, first="  mask     ")
    page.wrapped(f"then `profile: {named}` to goldentrace.yaml", indent=11)
    page.wrapped(f"then: {again}", indent=11)


def add_allowing(page: Page, told: list[TraceReport]) -> None:
    """Add what accepts the defects that gate, where they are meant: in the profile, for every run."""
    defects = [found for trace in told for found in counted(trace) if isinstance(found, Finding)]
    tools = dict.fromkeys((found.code, found.tool_name) for found in defects if found.severity == "error")
    if not tools:
        return
    entries = [
        f"{{code: {code}, {'' if tool is None else f'tool: {json.dumps(tool)}, '}reason: WHY}}"
        for code, tool in list(tools)[:MAX_ENTRIES]
    ]
    page.wrapped("where it is meant, add to the profile:", indent=11, first="  allow    ")
    page.wrapped(f"rules: {{suppressions: [{', '.join(entries)}]}}", indent=11)
