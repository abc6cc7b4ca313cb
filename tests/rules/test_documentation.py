"""A rule's docstring is its documentation: every section is there, in order, and says something."""

import importlib
import re
import subprocess
import sys

import pytest

import goldentrace.rules
from goldentrace.report.explanation import markdown_of
from goldentrace.rules.checklist import QUESTIONS
from goldentrace.rules.registry import PRECEDENCE, rules

SECTIONS = ("What it finds", "Why it matters", "Example", "Not a finding", "Options", "Needs", "References")


@pytest.mark.parametrize("code", list(rules()))
def test_the_docstring_of_a_rule_has_every_section(code: str) -> None:
    rule = rules()[code]
    module = importlib.import_module(rule.check.__module__)
    doc = module.__doc__ or ""
    assert module.__name__.endswith(f"{code.lower()}_{rule.name.replace('-', '_')}")
    assert re.match(rf"{code} {rule.name}: \S.*\.\n", doc), "first line: code, name, summary"
    assert re.findall(r"^([A-Z][a-z' ]{2,30}): \S", doc, re.MULTILINE) == list(SECTIONS)


@pytest.mark.parametrize("code", list(rules()))
def test_explain_shows_every_section(code: str) -> None:
    page = markdown_of(code) or ""
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == [*SECTIONS, "Where it is meant"]


def test_the_checklist_asks_about_every_rule_once() -> None:
    asked = [code for _, codes in QUESTIONS for code in codes]
    assert sorted(asked) == list(rules())


def test_precedence_names_rules() -> None:
    assert set(PRECEDENCE) <= rules().keys()


def test_loading_all_rules_imports_no_heavy_library() -> None:
    code = (
        "import sys; from goldentrace.rules.registry import rules; rules(); "
        "print(sorted({'jsonschema', 'referencing', 'yaml', 'rich', 'deepdiff', 'rapidfuzz', 'asyncio'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
    assert goldentrace.rules.__doc__
