"""Every real file is on one list, counted by code that shares nothing with the importers, and the importers agree with it.

The list is files.yaml; counting/ writes it, and its head says what counts as a call, a result and an error.
"""

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from goldentrace.cli.main import run
from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.errors import InputError
from goldentrace.model.event import ToolCall, ToolResult
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.pipeline import normalize
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.registry import read_traces
from tests.corpus.counting import files as counting
from tests.corpus.counting import sessions

PROFILE = Profile(name="default@1")
ROOT = Path(__file__).parents[2]
LISTED = counting.read_list()
WITH_RUNS = [name for name, line in LISTED.items() if "refused" not in line]
REFUSED = [name for name, line in LISTED.items() if "refused" in line]
NEEDS = {"inspect": "inspect_ai", "trail": "pyarrow"}
"""The optional part that a format needs."""


@pytest.fixture
def file(corpus: Path, request: pytest.FixtureRequest) -> Path:
    """The file of the test's name on the list."""
    return corpus / str(request.param)


def traces_of(path: Path, corpus: Path) -> list[Trace]:
    part = NEEDS.get(LISTED[path.relative_to(corpus).as_posix()].get("format", ""))
    if part is not None:
        pytest.importorskip(part)
    return list(read_traces(path))


def test_counting_imports_nothing_of_the_package() -> None:
    imported = set()
    for path in Path(counting.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    outer = {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {name for name in outer if not name.startswith("tests.corpus.counting")} == {"yaml", "pyarrow"}


def test_the_list_is_what_counting_gives_where_the_package_is_not_to_be_had(corpus: Path) -> None:
    """A file that is new, gone or changed shows here: the list is written anew with `python -m tests.corpus.counting`."""
    pytest.importorskip("pyarrow")
    program = (
        "import sys; sys.modules['goldentrace'] = None\n"
        "from tests.corpus.counting.files import write_list; from pathlib import Path\n"
        "sys.stdout.write(write_list(Path(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, corpus],
        cwd=ROOT,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == counting.LIST.read_text()


def test_the_list_names_each_file_and_its_content(corpus: Path) -> None:
    found = {name: hashlib.sha256((corpus / name).read_bytes()).hexdigest() for name in counting.files(corpus)}
    assert found == {name: line["sha256"] for name, line in LISTED.items()}
    assert list(LISTED) == sorted(LISTED)


@pytest.mark.parametrize("name", ["new/file.json", "toolathlon/MANIFEST_2.json"])
def test_a_file_that_no_one_rule_knows_is_an_error(name: str) -> None:
    counting.rule_of("toolathlon/MANIFEST.json")
    if name.startswith("new"):
        with pytest.raises(LookupError, match="0 rules"):
            counting.rule_of(name)
    else:
        assert isinstance(counting.rule_of(name), counting.Runs)


@pytest.mark.parametrize("file", WITH_RUNS, indirect=True, ids=str)
def test_the_importers_agree_with_the_list(file: Path, corpus: Path) -> None:
    name = file.relative_to(corpus).as_posix()
    rule, line = counting.rule_of(name), LISTED[name]
    assert isinstance(rule, counting.Runs)
    traces = traces_of(file, corpus)
    tables = [coverage_table(trace) for trace in traces]
    found = [Counter(calls=table.calls, results=table.results, errors=table.errors) for table in tables]
    total = sum(found, Counter[str]())
    assert {trace.format for trace in traces} == {line["format"]}
    assert {"runs": len(found), **{word: total[word] for word in ("calls", "results", "errors")}} == {
        word: line[word] for word in ("runs", "calls", "results", "errors")
    }
    assert [+each for each in found] == [+each for each in rule.count(file)]  # run by run, as well


@pytest.mark.parametrize("file", WITH_RUNS, indirect=True, ids=str)
def test_the_command_imports_what_the_list_says(
    file: Path, corpus: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = LISTED[file.relative_to(corpus).as_posix()]
    pytest.importorskip(NEEDS.get(line["format"], "goldentrace"))
    assert run(["import", str(file), "-o", f"{tmp_path}/"]) == 0
    capsys.readouterr()
    kinds: Counter[str] = Counter()
    written = sorted(tmp_path.iterdir())
    for path in written:
        for event in map(json.loads, path.read_bytes().splitlines()):
            kinds[event["type"]] += 1
            kinds["unfinished"] += event.get("status") == "unfinished"
    results = kinds["tool_result"] - kinds["unfinished"]
    assert (len(written), kinds["tool_call"], results) == (line["runs"], line["calls"], line["results"])


def test_the_tool_server_behind_a_model_in_one_cassette_is_read_when_asked_for(corpus: Path) -> None:
    for path in sorted(corpus.glob("formats/mcp_http/*.yaml")):
        tables = [coverage_table(trace) for trace in read_traces(path, "mcp")]
        found = [+Counter(calls=table.calls, results=table.results, errors=table.errors) for table in tables]
        assert found == [+each for each in sessions.mcp_cassette(path)]
        assert found[0]["calls"] == 1


@pytest.mark.parametrize("file", REFUSED, indirect=True, ids=str)
def test_what_the_list_refuses_is_refused(file: Path, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError):
        traces_of(file, corpus)
    assert run(["import", str(file)]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "internal error" not in shown.err
    assert "Traceback" not in shown.err
    assert file.name in shown.err


@pytest.mark.parametrize("file", WITH_RUNS, indirect=True, ids=str)
def test_each_real_run_becomes_a_golden_that_it_meets(file: Path, corpus: Path) -> None:
    for trace in traces_of(file, corpus):
        normal = normalize(trace, PROFILE, "h:000000000000")
        data = encode_golden(as_golden(normal, PROFILE))
        golden = read_golden(data, "golden")
        assert encode_golden(golden) == data
        found = compare(golden, normal, PROFILE)
        assert not found.changes, (trace.start.trace_id, [change.message for change in found.changes])
        assert not found.not_comparable, trace.start.trace_id


@pytest.mark.parametrize("file", WITH_RUNS, indirect=True, ids=str)
def test_each_result_of_a_real_run_has_its_call_before_it(file: Path, corpus: Path) -> None:
    """Except those whose call is not in the file, each of which is noted."""
    for trace in traces_of(file, corpus):
        open_ids: list[str] = []
        alone = 0
        for event in trace.events:
            if isinstance(event, ToolCall):
                open_ids.append(event.call_id)
            elif isinstance(event, ToolResult):
                if event.call_id in open_ids:
                    open_ids.remove(event.call_id)
                else:
                    alone += 1
        assert open_ids == [], trace.start.trace_id
        assert alone <= len(trace.notes), trace.start.trace_id
