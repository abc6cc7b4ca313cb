"""What cannot be read gives code 3 and one message: what, where, what to do next. No traceback, nothing written."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.traces import call, dump, end, files_in, searches, start, write
from tests.conftest import Cli

GOOD = dump(searches(3)).encode()
LINES = GOOD.splitlines(keepends=True)


def line_3(data: bytes) -> bytes:
    """A whole trace whose third line is this."""
    return b"".join([*LINES[:2], data, *LINES[3:]])


def golden_of(*, profile: str = "default@1", profile_hash: str = "h:bc58f7d766b0") -> bytes:
    head = {"type": "trace_start", "format": "goldentrace/1", "kind": "golden"}
    lines = [{**head, "profile": profile, "profile_hash": profile_hash}, end()]
    return dump(lines).encode()


def deep(levels: int) -> bytes:
    return b'{"type":"tool_call","call_id":"c","tool_name":"t","args":' + b"[" * levels + b"]" * levels + b"}\n"


BAD: dict[str, tuple[bytes, str, str]] = {
    # name: (bytes, what the message says, where it says that is)
    "an empty file": (b"", "empty", "bad.jsonl"),
    "only white space": (b"\n \n", "empty", "bad.jsonl"),
    "not JSON": (b"hello\n", "no known format", "bad.jsonl"),
    "a line that is not JSON": (line_3(b"{oops}\n"), "not JSON", "bad.jsonl:3"),
    "a line that is not an object": (line_3(b"[1, 2]\n"), "no JSON object", "bad.jsonl:3"),
    "a wrong field type": (
        line_3(b'{"type":"tool_result","call_id":7,"status":"ok"}\n'),
        "expected `str`",
        "bad.jsonl:3 $.call_id",
    ),
    "an unknown status": (
        line_3(b'{"type":"tool_result","call_id":"c","status":"fine"}\n'),
        "invalid enum value",
        "bad.jsonl:3 $.status",
    ),
    "a missing field": (line_3(b'{"type":"tool_result","status":"ok"}\n'), "call_id", "bad.jsonl:3"),
    "a second trace_start": (line_3(LINES[0]), "a second trace_start", "bad.jsonl:3"),
    "an event after trace_end": (GOOD + LINES[1], "after trace_end", "bad.jsonl:9"),
    "a run of NUL bytes": (line_3(b"\0" * 64 + b"\n"), "NUL bytes", "bad.jsonl:3"),
    "invalid UTF-8": (line_3(b'{"type":"message","role":"user","text":"\xff\xfe"}\n'), "not UTF-8", "bad.jsonl:3"),
    "NaN": (line_3(b'{"type":"tool_call","call_id":"c","tool_name":"t","args":{"x":NaN}}\n'), "NaN", "bad.jsonl:3"),
    "Infinity": (
        line_3(b'{"type":"tool_call","call_id":"c","tool_name":"t","args":{"x":-Infinity}}\n'),
        "Infinity",
        "bad.jsonl:3",
    ),
    "nesting 100,000 deep": (line_3(deep(100_000)), "nested deeper than", "bad.jsonl:3"),
    "an integer of 5,000 digits": (
        line_3(b'{"type":"tool_call","call_id":"c","tool_name":"t","args":{"x":' + b"9" * 5000 + b"}}\n"),
        "4300 digits",
        "bad.jsonl:3",
    ),
    "a conflict marker in a trace": (line_3(b"<<<<<<< ours\n"), "conflict marker", "bad.jsonl:3"),
    "another format version": (
        GOOD.replace(b"goldentrace/1", b"goldentrace/9"),
        "goldentrace/9",
        "bad.jsonl:1 $.format",
    ),
    "a gap in seq": (
        dump([{**e, "seq": n + (n > 2)} for n, e in enumerate(searches(3))]).encode(),
        "missing between seq",
        "bad.jsonl:4",
    ),
    "a wrong count in trace_end": (
        GOOD.replace(b'"final_answer"', b'"final_answer", "events": 99'),
        "counts 99",
        "bad.jsonl:8",
    ),
    "a wrong checksum": (GOOD.replace(b'"final_answer"', b'"final_answer", "sha256": "00"'), "checksum", "bad.jsonl:8"),
    "a damaged gzip file": (b"\x1f\x8b\x08\x00" + b"\0" * 20, "compressed data is damaged", "bad.jsonl"),
}

BAD_GOLDEN: dict[str, tuple[bytes, str, str]] = {
    "a conflict marker in a golden": (
        golden_of().replace(b"\n", b"\n<<<<<<< ours\n", 1), "conflict marker", "bad.jsonl:2",
    ),
    "a conflict marker at the top": (b"<<<<<<< ours\n" + golden_of(), "conflict marker", "bad.jsonl:1"),
    "a golden without its end": (golden_of().splitlines(keepends=True)[0], "no trace_end", "bad.jsonl"),
    "a result that nothing opened": (
        golden_of().replace(b"\n", b'\n{"type":"tool_result","call":"a#1","status":"ok"}\n', 1), "waits for", "bad.jsonl:2",
    ),
    "an unknown field in a golden": (golden_of().replace(b'"outcome"', b'"outcom": 1, "outcome"'), "outcom", "bad.jsonl:2"),
    "no JSON in a golden": (golden_of().replace(b"\n", b"\n{oops\n", 1), "not JSON", "bad.jsonl:2"),
}  # fmt: skip

READERS: dict[str, Callable[[Path], list[str | Path]]] = {
    "diff golden": lambda bad: ["diff", bad, "good.jsonl"],
    "diff candidate": lambda bad: ["diff", "good.jsonl", bad],
    "record --from": lambda bad: ["record", "new", "--from", bad],
    "show": lambda bad: ["show", bad],
    "normalize": lambda bad: ["normalize", bad],
    "import": lambda bad: ["import", bad, "-o", "out.jsonl"],
    "lint": lambda bad: ["lint", bad],
    "fmt --check": lambda bad: ["fmt", "--check", bad],
}


def check_message(stderr: str, what: str = "", where: str = "") -> None:
    """One message in the one shape, and no traceback."""
    assert "Traceback" not in stderr
    assert "internal error" not in stderr
    lines = stderr.rstrip("\n").split("\n")
    assert lines[0].startswith("goldentrace: ")
    assert all(line.startswith("  ") for line in lines[1:]), stderr
    assert len(lines) >= 2, f"the message does not say where or what to do next: {stderr}"
    assert what in stderr
    assert where in stderr


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", BAD)
def test_a_trace_that_cannot_be_read(tmp_path: Path, here: Cli, case: str, reader: str) -> None:
    data, what, where = BAD[case]
    (tmp_path / "bad.jsonl").write_bytes(data)
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    before = files_in(tmp_path)
    done = here(*READERS[reader](Path("bad.jsonl")))
    assert done.code == 3, done.stdout
    if reader == "fmt --check":
        check_message(done.stderr)  # to fmt, a good trace is no golden either
    else:
        check_message(done.stderr, what, where)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    "reader", ["diff golden", "diff candidate", "show", "normalize", "fmt --check", "record --from"]
)
@pytest.mark.parametrize("case", BAD_GOLDEN)
def test_a_golden_that_cannot_be_read(tmp_path: Path, here: Cli, case: str, reader: str) -> None:
    data, what, where = BAD_GOLDEN[case]
    (tmp_path / "bad.jsonl").write_bytes(data)
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    before = files_in(tmp_path)
    done = here(*READERS[reader](Path("bad.jsonl")))
    assert done.code == 3, done.stdout
    check_message(done.stderr, what, where)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["missing", "folder", "unreadable", "device", "name that no file can have"])
def test_a_path_that_is_no_readable_file(tmp_path: Path, here: Cli, kind: str, reader: str) -> None:
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    bad = Path("bad.jsonl")
    if kind == "folder":
        (tmp_path / bad).mkdir()
    elif kind == "unreadable":
        (tmp_path / bad).symlink_to("/proc/self/mem")  # even root cannot read its first byte
        if not Path("/proc/self/mem").exists():
            pytest.skip("there is no file here that nobody can read")
    elif kind == "device":
        bad = Path("/dev/zero")
    elif kind == "name that no file can have":
        bad = Path("x" * 300)
    before = files_in(tmp_path) if kind != "unreadable" else {}
    done = here(*READERS[reader](bad))
    assert done.code == 3, done.stdout
    check_message(done.stderr)
    assert kind == "unreadable" or files_in(tmp_path) == before


@pytest.mark.parametrize("reader", ["diff golden", "diff candidate"])
def test_a_torn_or_unended_trace_has_no_verdict(tmp_path: Path, cli: Cli, reader: str) -> None:
    for data in (GOOD[:-40], b"".join(LINES[:-1])):
        (tmp_path / "bad.jsonl").write_bytes(data)
        (tmp_path / "good.jsonl").write_bytes(GOOD)
        done = cli(*READERS[reader](Path("bad.jsonl")))
        assert done.code == 3
        assert "incomplete" in done.stdout
        assert "Traceback" not in done.stderr


def test_a_torn_or_unended_trace_is_not_recorded(tmp_path: Path, cli: Cli) -> None:
    for data in (GOOD[:-40], b"".join(LINES[:-1])):
        (tmp_path / "bad.jsonl").write_bytes(data)
        done = cli("record", "new", "--from", "bad.jsonl")
        assert done.code == 3
        check_message(done.stderr, "incomplete", "bad.jsonl")
        assert not (tmp_path / "goldens/new.jsonl").exists()
    assert cli("record", "new", "--from", "bad.jsonl", "--allow-incomplete").code in (0, 2)


def test_a_torn_trace_is_shown_as_far_as_it_goes(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "bad.jsonl").write_bytes(GOOD[:-40])
    done = cli("show", "bad.jsonl")
    assert done.code == 0
    assert "search#3" in done.stdout
    assert "torn" in done.stdout


def test_a_profile_that_is_gone(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "golden.jsonl").write_bytes(golden_of(profile="shop@3"))
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    done = cli("diff", "golden.jsonl", "good.jsonl")
    assert done.code == 3
    check_message(done.stderr, "'shop@3' is gone", "golden.jsonl:1 $.profile")
    assert "goldentrace record" in done.stderr


def test_a_profile_that_differs(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "golden.jsonl").write_bytes(golden_of(profile_hash="h:000000000000"))
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    done = cli("diff", "golden.jsonl", "good.jsonl")
    assert done.code == 3
    check_message(done.stderr, "another default@1", "golden.jsonl:1 $.profile_hash")
    assert "goldentrace record" in done.stderr


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/b@1", "", "..", "x" * 5000])
def test_a_golden_cannot_name_a_file_as_its_profile(tmp_path: Path, here: Cli, name: str) -> None:
    (tmp_path / "golden.jsonl").write_bytes(golden_of(profile=name))
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    done = here("diff", "golden.jsonl", "good.jsonl")
    assert done.code == 3
    check_message(done.stderr)


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["dif", "a", "b"], "did you mean diff?"),
        (["diff", "--outptu-format", "json"], "did you mean --output-format?"),
        (["diff", "a", "b", "--output-format", "yaml"], "--help"),
        (["diff", "a", "b", "--fail-on", "eror"], "--help"),
        (["diff", "a", "b", "--width", "wide"], "--help"),
        (["diff", "a", "b", "--max-bytes", "-1"], "--help"),
        (["diff", "good.jsonl", "good.jsonl", "--profile", "defualt"], "did you mean default"),
        (["diff", "a", "b", "--format", "openai_chat"], ""),
        (["record"], "--help"),
        (["explain", "GT110"], "did you mean GT"),
        (["schema", "traces"], "did you mean trace?"),
        (["accept"], "--all"),
        (["accept", "--all"], "goldentrace diff"),
        (["run"], "goldentrace init"),
        (["check"], "goldentrace init"),
        (["diff"], "goldentrace init"),
        (["record", "a/b", "--from", "good.jsonl"], "letters, digits"),
        (["record", "con", "--from", "good.jsonl"], "letters, digits"),
        (["record", "new", "--from", "good.jsonl", "--suite", ".."], "letters, digits"),
        (["record", "new", "other", "--from", "good.jsonl"], "one after another"),
        (["record", "new", "--from", "good.jsonl", "--verify", "2"], "leave one"),
        (["record", "new", "--from", "good.jsonl", "--", "true"], "leave one"),
        (["diff", "good.jsonl"], "GOLDEN and CANDIDATE"),
        (["diff", "a", "b", "c"], "goldentrace init"),
        (["fmt"], "record a golden"),
        (["config", "--environment", "staging"], "environments"),
        (["diff", "a", "b", "--config", "other.yaml"], "--config"),
    ],
)  # fmt: skip
def test_a_wrong_command_line(tmp_path: Path, here: Cli, args: list[str], hint: str) -> None:
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    before = files_in(tmp_path)
    done = here(*args)
    assert done.code == 3, done.stdout
    check_message(done.stderr, hint)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    ("text", "what", "where", "hint"),
    [
        ("goldns: x\n", "unknown key 'goldns'", "goldentrace.yaml:1 $.goldns", "did you mean goldens?"),
        ("limits:\n  max_wal_ms: 3\n", "unknown key", "goldentrace.yaml:2 $.limits.max_wal_ms", "did you mean max_wall_ms?"),
        ("scenarios:\n  a:\n    comand: x\n", "unknown key", "goldentrace.yaml:3 $.scenarios.a.comand", "did you mean command?"),
        ("a: [\n", "not YAML", "goldentrace.yaml:", ""),
        ("goldens: /tmp/x\n", "inside the project", "goldentrace.yaml:1 $.goldens", ""),
        ("goldens: a/../../b\n", "inside the project", "goldentrace.yaml:1 $.goldens", ""),
        ("scenarios: {a: {}, A: {}}\n", "case does not count", "goldentrace.yaml:1 $.scenarios.A", ""),
        ("scenarios: {a: {command: 'x \"y'}}\n", "cannot be split", "goldentrace.yaml:1 $.scenarios.a.command", ""),
        ("scenarios: {a: {command: ''}}\n", "empty", "goldentrace.yaml:1 $.scenarios.a.command", ""),
        ("scenarios: {'..': {}}\n", "scenario name", "goldentrace.yaml:1", ""),
        ("profile: nope\nscenarios: {a: {command: 'true'}}\n", "no profile 'nope'", "", "known are"),
        ("goldens: a\ngoldens: b\n", "stands twice", "goldentrace.yaml:2 $.goldens", ""),
        ("a: &a [*a]\n", "contains itself", "goldentrace.yaml:1", ""),
        ("fail_on: fatal\n", "'fatal'", "goldentrace.yaml:1 $.fail_on", "error"),
        ("jobs: 0\n", ">= 1", "goldentrace.yaml:1 $.jobs", ""),
        ("limits: {max_tool_calls: -1}\n", ">= 0", "goldentrace.yaml:1 $.limits.max_tool_calls", ""),
    ],
)  # fmt: skip
def test_a_wrong_configuration(tmp_path: Path, here: Cli, text: str, what: str, where: str, hint: str) -> None:
    (tmp_path / "goldentrace.yaml").write_text(text)
    for args in (["run"], ["check"], ["record", "a"]):
        done = here(*args)
        assert done.code == 3, done.stdout
        check_message(done.stderr, what, where)
        assert hint in done.stderr
    assert list(files_in(tmp_path)) == ["goldentrace.yaml"]


def test_an_alias_bomb_is_refused(tmp_path: Path, cli: Cli) -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    (tmp_path / "goldentrace.yaml").write_text("\n".join(["a0: &a0 [x]", *levels]))
    done = cli("config", timeout_s=20)
    assert done.code == 3
    check_message(done.stderr, "aliases counted")


def test_a_wrong_table_in_pyproject(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.goldentrace]\nprofil = "a"\n')
    done = cli("config")
    assert done.code == 3
    check_message(done.stderr, "unknown key 'profil'", "pyproject.toml:5 $.tool.goldentrace.profil")


def test_a_misspelt_variable_is_refused(cli: Cli) -> None:
    done = cli("config", env={"GOLDENTRACE_OPT_PROFIL": "strict"})
    assert done.code == 3
    check_message(done.stderr, "GOLDENTRACE_OPT_PROFIL")
    assert "did you mean PROFILE?" in done.stderr


def test_a_foreign_file_of_several_traces_names_them(tmp_path: Path, cli: Cli) -> None:
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    (tmp_path / "many.jsonl").write_text("".join(json.dumps({"messages": chat}) + "\n" for _ in range(3)))
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    done = cli("diff", "many.jsonl", "good.jsonl", "--format", "openai-chat")
    assert done.code == 3
    check_message(done.stderr, "several traces", "many.jsonl")
    assert "--trace" in done.stderr


def test_control_characters_of_a_file_do_not_reach_the_terminal(tmp_path: Path, cli: Cli) -> None:
    name = "\x1b[31m\u202ebad.jsonl"
    (tmp_path / name).write_bytes(b"hello")
    done = cli("show", name)
    assert done.code == 3
    assert "\x1b" not in done.stderr
    assert "\u202e" not in done.stderr
    write(tmp_path / "evil.jsonl", [start(scenario_id="\x1b]0;evil\x07::error::"), *call(1, "\x1b[2Jtool"), end()])
    for command in (["show"], ["diff", "evil.jsonl"], ["lint"], ["normalize", "--explain"]):
        done = cli(*command, "evil.jsonl")
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x07" not in done.stdout + done.stderr


def test_a_file_beyond_the_limit_names_the_limit(tmp_path: Path, cli: Cli) -> None:
    """1 GiB is the default; a sparse file takes no room."""
    with (tmp_path / "big.jsonl").open("wb") as file:
        file.write(LINES[0])
        file.truncate((1 << 30) + 1)
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    for args in (["diff", "big.jsonl", "good.jsonl"], ["show", "big.jsonl"], ["record", "new", "--from", "big.jsonl"]):
        done = cli(*args)
        assert done.code == 3
        check_message(done.stderr, "larger than the limit of 1,073,741,824 bytes", "big.jsonl")
        assert "--max-bytes" in done.stderr
    done = cli("show", "good.jsonl", "--max-bytes", "10")
    assert done.code == 3
    check_message(done.stderr, "limit of 10 bytes", "good.jsonl")


def test_a_line_of_50_mb_is_read_within_a_gigabyte(tmp_path: Path) -> None:
    big = {"type": "tool_call", "turn": 1, "call_id": "c", "tool_name": "t", "args": {"blob": "x" * 50_000_000}}
    result = {"type": "tool_result", "turn": 1, "call_id": "c", "status": "ok"}
    for name in ("a.jsonl", "b.jsonl"):
        write(tmp_path / name, [start(), big, result, end()])

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    program = Path(sys.executable).with_name("goldentrace")
    done = subprocess.run(
        [program, "diff", "a.jsonl", "b.jsonl"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def test_memory_that_runs_out_is_said(tmp_path: Path) -> None:
    big = {"type": "tool_call", "turn": 1, "call_id": "c", "tool_name": "t", "args": {"blob": "x" * 60_000_000}}
    write(tmp_path / "a.jsonl", [start(), big, end()])

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))

    program = Path(sys.executable).with_name("goldentrace")
    done = subprocess.run(
        [program, "show", "a.jsonl"], cwd=tmp_path, capture_output=True, timeout=60, preexec_fn=limit, check=False
    )
    assert done.returncode == 3
    check_message(done.stderr.decode(), "out of memory")


def test_a_closed_pipe_keeps_the_code(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", searches(400))
    write(tmp_path / "b.jsonl", searches(400, "xyz"))
    write(tmp_path / "c.jsonl", searches(400))
    program = Path(sys.executable).with_name("goldentrace")
    for args, code in (
        (["diff", "a.jsonl", "b.jsonl", "-v"], 2),
        (["diff", "a.jsonl", "c.jsonl", "-v"], 0),
        (["show", "a.jsonl"], 0),
        (["normalize", "a.jsonl"], 0),
        (["--help"], 0),
        (["diff", "a.jsonl", "gone.jsonl"], 3),
    ):
        read, write_end = os.pipe()
        os.close(read)
        done = subprocess.run(
            [program, *args], cwd=tmp_path, stdout=write_end, stderr=subprocess.PIPE, timeout=60, check=False
        )
        os.close(write_end)
        assert done.returncode == code, (args, done.stderr)
        assert b"Traceback" not in done.stderr
        assert b"BrokenPipe" not in done.stderr


def test_closed_descriptors_are_no_crash(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", searches(3))
    program = Path(sys.executable).with_name("goldentrace")
    for redirect, code in ((">&-", 0), ("2>&-", 0), (">&- 2>&-", 0), ("<&-", 0)):
        line = f"'{program}' diff a.jsonl a.jsonl {redirect}"
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, timeout=60, check=False, capture_output=True)
        assert done.returncode == code, redirect
    done = subprocess.run(
        ["sh", "-c", f"'{program}' show gone.jsonl 2>&-"], cwd=tmp_path, timeout=60, check=False, capture_output=True
    )
    assert done.returncode == 3


def test_a_full_disk_is_an_error(tmp_path: Path, cli: Cli) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no full device here")
    write(tmp_path / "a.jsonl", searches(3))
    (tmp_path / "goldens").symlink_to("/dev/full")
    done = cli("record", "new", "--from", "a.jsonl")
    assert done.code == 3
    check_message(done.stderr)


def test_an_interrupt_gives_no_verdict(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("goldentrace")
    started = subprocess.Popen(
        [program, "show", "-"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert started.stdin is not None
    started.stdin.write(LINES[0])
    started.stdin.flush()
    _wait_until_reading(started.pid)
    started.send_signal(signal.SIGINT)
    _, stderr = started.communicate(timeout=30)
    assert started.returncode == 3
    assert b"interrupted" in stderr
    assert b"Traceback" not in stderr


def _wait_until_reading(pid: int) -> None:
    """Until the program has imported what it needs and waits for its input."""
    import time

    for _ in range(2000):
        blocked = re.search(r"^State:\s+S", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        if blocked and "pipe_read" in Path(f"/proc/{pid}/wchan").read_text():
            return
        time.sleep(0.005)
    time.sleep(1)


def test_a_lost_folder_is_an_error(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("goldentrace")
    line = f"mkdir gone && cd gone && rmdir ../gone && '{program}' diff"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, timeout=60, check=False, capture_output=True)
    assert done.returncode == 3
    check_message(done.stderr.decode())
