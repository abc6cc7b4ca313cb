"""What `explain` prints: a page per change code, whole; rules from their docstrings."""

import re
from pathlib import Path

import pytest

from goldentrace.diff.codes import CODES
from goldentrace.errors import ConfigError
from goldentrace.model.profile import Profile
from goldentrace.report import explain
from goldentrace.report.cells import measure
from goldentrace.report.explanation import CHANGE_SECTIONS, markdown_of, sections
from tests.report import scenes

PAGES = Path(__file__).parents[2] / "goldentrace" / "report" / "explanations"


def page(code: str) -> str:
    found = markdown_of(code)
    assert found is not None, code
    return found


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_has_every_section(code: str) -> None:
    found = sections(page(code))
    assert tuple(found) == CHANGE_SECTIONS
    assert all(len(body) > 20 for body in found.values())
    assert page(code).startswith(f"# {code} {CODES[code].name}\n\n")


def test_no_page_is_without_its_code() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == set(CODES)


@pytest.mark.parametrize("code", sorted(CODES))
def test_an_example_is_of_its_code_and_fits(code: str) -> None:
    example = sections(page(code))["Example"]
    assert example.startswith(f"```text\n{code} {CODES[code].name}  ")
    assert all(measure(line) <= 76 for line in example.partition("\n```")[0].splitlines())


@pytest.mark.parametrize("code", sorted(CODES))
def test_pages_name_only_codes_and_settings_that_there_are(code: str) -> None:
    named = set(re.findall(r"\bGT[1-7]\d\d\b", page(code)))
    assert named <= set(CODES)
    keys = set(re.findall(r"`(\w+): \{", sections(page(code))["Options"]))
    assert keys <= {*Profile.__struct_fields__, "limits"}


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("code", sorted(CODES))
def test_a_page_fits(code: str, width: int) -> None:
    text = explain(code, width=width)
    assert all(measure(line) <= width for line in text.splitlines())
    assert text.startswith(f"{code} {CODES[code].name}\n")
    for section in CHANGE_SECTIONS:
        assert f"\n{section}\n" in text


def test_colours_change_no_word() -> None:
    painted = explain("GT101", color=True)
    assert "\x1b[1m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == explain("GT101")


@pytest.mark.parametrize("name", ["GT402", "gt402", " GT402 ", "retry-after-violated", "Retry-After-Violated"])
def test_a_code_is_found_by_its_name_too(name: str) -> None:
    assert explain(name) == explain("GT402")


@pytest.mark.parametrize(
    ("name", "near"), [("GT4022", "GT402"), ("argument-chaged", "argument-changed"), ("", "lists all codes")]
)
def test_an_unknown_code_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(ConfigError) as error:
        explain(name)
    assert near in error.value.next_step


RULE = '''"""GT1999 made-up-rule: a call that somebody made up.

What it finds: a call that is in no trace,
    over two lines.
Why it matters: it does not.
Example: read(config.json) twice.
Not a finding: everything else.
Options: none.
Needs: nothing.
References: none.
"""

raise SystemExit("a page is read, not run")
'''


def test_a_rule_is_explained_by_its_docstring_without_being_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gt1999_made_up_rule.py").write_text(RULE)
    monkeypatch.setattr("goldentrace.report.explanation._RULES", tmp_path)
    text = explain("made-up-rule")
    assert text.startswith(
        "GT1999 made-up-rule\n  A call that somebody made up.\n\nWhat it finds\n  A call that is in no trace, over two"
    )
    assert "\nNeeds\n  Nothing.\n" in text
    assert explain("gt1999") == text


def test_a_section_that_begins_with_a_name_keeps_it() -> None:
    assert "\nExample\n  get_order(order_id=" in explain("GT1507")
    assert "\nOptions\n  max_bytes (" in explain("GT1602")


def test_every_rule_that_there_is_has_its_page() -> None:
    for path in (PAGES.parent.parent / "rules").glob("gt*_*.py"):
        code = path.name[:6].upper()
        assert {"What it finds", "Why it matters", "Example", "Options"} <= set(sections(page(code))), path.name


@pytest.mark.parametrize("name", ["argument_changed", "call_removed", "identity_changed", "attempts_changed"])
def test_examples_look_like_the_report(name: str) -> None:
    """The headings of examples have the form of real ones: code, name, severity, what it is about, lines."""
    heading = next(line for line in scenes.texts()[name].splitlines() if line.startswith("GT"))
    example = sections(page(heading[:5]))["Example"].splitlines()[1]
    form = r"GT\d{3} [a-z-]+  (error|warning|note)  (\S+|the run|\S+ \(new\))(  (golden:\d+ ?)?(now:\d+)?)?"
    assert re.fullmatch(form, heading)
    assert re.fullmatch(form, example)
