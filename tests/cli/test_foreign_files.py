"""`lint`, `show` and `diff` directly on files of other formats, which may be one JSON document without lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli

READ = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.txt"}'}}


def chat(*texts: str) -> list[dict[str, Any]]:
    """A run that reads one file again and again; its results are the texts."""
    found: list[dict[str, Any]] = [{"role": "user", "content": "read it"}]
    for number, text in enumerate(texts, start=1):
        found.append({"role": "assistant", "content": None, "tool_calls": [{**READ, "id": f"c{number}"}]})
        found.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
    return [*found, {"role": "assistant", "content": "done"}]


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat("same words", "same words")))
    return path


def test_a_finding_in_a_document_without_lines_names_the_file_alone(document: Path, here: Cli) -> None:
    for name in ("text", "concise", "markdown", "github", "gitlab"):
        told = here("lint", "chat.json", "--output-format", name).stdout
        assert "GT1004" in told
        assert "chat.json:0" not in told
        assert "line=0" not in told
        assert '"begin": 0' not in told
    sarif = json.loads(here("lint", "chat.json", "--output-format", "sarif").stdout)
    (result,) = sarif["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
    (trace,) = json.loads(here("lint", "chat.json", "--output-format", "json").stdout)["traces"]
    (finding,) = trace["findings"]
    assert (finding["lines"], finding["candidate"], finding["operations"]) == ([], None, ["read#1", "read#2"])
    assert "line 0" not in here("lint", "chat.json", "--checklist").stdout


def test_a_finding_in_a_document_without_lines_stands_at_its_calls(document: Path, here: Cli) -> None:
    lines = here("show", "chat.json").stdout.splitlines()
    marked = [number for number, line in enumerate(lines) if "^ GT1004" in line]
    assert [lines[number - 1].split()[:2] for number in marked] == [["result", "read#1"], ["result", "read#2"]]
    assert lines[marked[0]].strip() == "^ GT1004 repeated-result, 1 of 2: see read#2"
