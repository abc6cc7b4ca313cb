"""The project speaks of itself alone: no path of one machine, no registry's host, no word on how it was made."""

import re
from pathlib import Path

import pytest

from tests.house.tracked import ROOT, tracked

FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.}-])/(?:work|root|farm)(?:/|\b)|\btmp/b(?:ash_jobs|rief)\b"),
    "a folder outside the project": re.compile(r"(?<![\w<-])s[h]ared/"),
    "the host of a package registry": re.compile(
        r"\b(?:pypi|test\.pypi|pythonhosted|npmjs|anaconda|rubygems|crates)\.(?:org|com|io)\b"
        r"|\b(?:deb|security|archive|ports)\.(?:debian|ubuntu)\.(?:org|com)\b|\bproxy\.golang\b",
        re.IGNORECASE,
    ),
    "a page that is not in the project": re.compile(r"\b(?:design|research)/(?:\d|[a-z-]+\.md)"),
    "how the project was made": re.compile(
        r"\bco-authored-by\b|\bgenerated (?:by|with) (?:claude|chatgpt|copilot|an? (?:ai|llm|language model))\b"
        r"|\bas an ai\b|\b(?:my|the|our|this) (?:brief|steering|helper session|developer session)\b"
        r"|\b(?:ask|tell|report to|asked by) the lead\b|\bclosing note\b",
        re.IGNORECASE,
    ),
}

ALLOWED = {Path(".ci/run"): {"a folder outside the project"}}
"""The one file that knows where continuous integration keeps real traces."""


def findings(path: Path, text: str) -> list[str]:
    """Return `line: what: text` for each forbidden passage."""
    return [
        f"{path}:{number}: {what}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in FORBIDDEN.items()
        if what not in ALLOWED.get(path, set()) and pattern.search(line)
    ]


def test_no_file_holds_a_forbidden_passage() -> None:
    found = []
    for path in tracked():
        if path != Path(__file__).relative_to(ROOT):
            found += findings(path, (ROOT / path).read_text("utf-8", "replace"))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a path of one machine", 'ROOT = "/wo' + 'rk/main"'),
        ("a path of one machine", "HOME=/ro" + "ot"),
        ("a folder outside the project", "see ../sha" + "red/data"),
        ("the host of a package registry", "https://PyPI" + ".org/simple"),
        ("the host of a package registry", "http://deb.deb" + "ian.org"),
        ("a page that is not in the project", "as des" + "ign/4 says"),
        ("how the project was made", "Co-Auth" + "ored-By: someone"),
    ],
)
def test_a_forbidden_passage_is_found(what: str, line: str) -> None:
    assert [what] == [finding.split(": ")[1] for finding in findings(Path("x.py"), line)]


@pytest.mark.parametrize(
    "line",
    [
        "a session of Claude Code, read from ~/.claude",
        'role: "assistant"',
        "network/route, homework/1, ./root/x, docs/shared-folder",
        "the lead time of an order; a design for 4",
    ],
)
def test_words_of_the_domain_are_free(line: str) -> None:
    assert findings(Path("x.py"), line) == []
