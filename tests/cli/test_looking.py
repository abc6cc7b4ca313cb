"""The commands that look and convert: show, normalize, import, formats, lint, rules, explain, schema."""

import json
import threading
import time
from pathlib import Path

import pytest

from tests.cli.traces import call, dump, end, files_in, searches, start, write
from tests.conftest import Cli

ID = "0b9f6c1e-3f0a-4f7e-9d0a-6f3b1c2d4e5f"
CHAT = [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "sun"},
    {"role": "assistant", "content": "sun"},
]  # fmt: skip


def timed(events: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**event, "ts": f"2026-03-01T00:00:{n:02d}.000000Z"} for n, event in enumerate(events)]


def test_show_prints_a_timeline(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", timed(searches(2)))
    done = here("show", "a.jsonl")
    assert (done.code, done.stderr) == (0, "")
    assert [word in done.stdout for word in ("search#2", "+4.00s", "final_answer")] == [True] * 3
    events = json.loads(here("show", "a.jsonl", "--output-format", "json").stdout)["events"]
    assert [event.get("t_offset_ms") for event in events][-1] == 5000


def test_show_takes_a_golden(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(2))
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    done = here("show", "goldens/orders.jsonl")
    assert done.code == 0
    assert "search#2" in done.stdout


def test_show_follows_a_trace_that_is_being_written(tmp_path: Path, cli: Cli) -> None:
    events = timed(searches(3))
    file = write(tmp_path / "a.jsonl", events[:3])

    def go_on() -> None:
        for event in events[3:]:
            time.sleep(0.4)
            with file.open("a") as writer:
                writer.write(dump([event]))

    writing = threading.Thread(target=go_on)
    writing.start()
    done = cli("show", "a.jsonl", "--follow", timeout_s=30)
    writing.join()
    assert done.code == 0
    assert [f"search#{n}" in done.stdout for n in (1, 2, 3)] == [True] * 3
    assert "final_answer" in done.stdout


def test_normalize_prints_offsets_and_reads_back(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", timed(searches(2)))
    done = here("normalize", "a.jsonl")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.code, lines[0]["kind"], lines[2]["t_offset_ms"]) == (0, "normalized", 1000)
    assert here("normalize", "a.jsonl", "-o", "n.jsonl").code == 0
    assert here("normalize", "n.jsonl").stdout == (tmp_path / "n.jsonl").read_text()
    assert here("show", "n.jsonl").code == 0


def test_normalize_explains_every_masked_value(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", [start(cwd="/srv/x"), *call(1, "t", id=ID, path="/srv/x/y"), end()])
    done = here("normalize", "a.jsonl", "--explain", "--width", "120")
    assert done.code == 0
    assert "<new:uuid>" in done.stdout
    assert "<cwd>" in done.stdout
    masked = json.loads(here("normalize", "a.jsonl", "--explain", "--output-format", "json").stdout)["masked"]
    assert {entry["pointer"] for entry in masked} >= {"/id", "/path"}


def test_normalize_uses_the_named_profile(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    header = json.loads(here("normalize", "a.jsonl", "--profile", "lenient").stdout.splitlines()[0])
    assert header["profile"] == "lenient@1"


def test_import_writes_what_every_command_reads(tmp_path: Path, here: Cli) -> None:
    (tmp_path / "chat.json").write_text(json.dumps(CHAT))
    done = here("import", "chat.json", "-o", "made/t.jsonl")
    assert (done.code, done.stdout) == (0, "")
    assert "calls" in done.stderr
    assert here("diff", "chat.json", "made/t.jsonl").code == 0
    assert here("import", "chat.json", "-q").stdout == (tmp_path / "made/t.jsonl").read_text()


def test_import_of_several_traces(tmp_path: Path, here: Cli) -> None:
    (tmp_path / "many.jsonl").write_text("".join(json.dumps({"messages": CHAT}) + "\n" for _ in range(3)))
    listed = here("import", "many.jsonl", "--list", "--output-format", "json")
    names = [entry["trace"] for entry in json.loads(listed.stdout)["traces"]]
    assert len(names) == 3
    done = here("import", "many.jsonl")
    assert (done.code, "-o DIR/" in done.stderr, done.stdout) == (3, True, "")
    assert here("import", "many.jsonl", "-o", "out/").code == 0
    assert len(list((tmp_path / "out").glob("*.jsonl"))) == 3
    if len(set(names)) == 3:
        assert here("import", "many.jsonl", "--trace", names[1], "-o", "one.jsonl").code == 0
    done = here("import", "many.jsonl", "--trace", "nope")
    assert (done.code, "no trace 'nope'" in done.stderr) == (3, True)


def test_import_leaves_no_secret_and_no_wrong_checksum(tmp_path: Path, here: Cli) -> None:
    secret = "sk-" + "a1B2" * 10
    (tmp_path / "chat.json").write_text(json.dumps([{"role": "user", "content": f"key {secret}"}, *CHAT[1:]]))
    done = here("import", "chat.json")
    assert secret not in done.stdout
    assert "<secret:1>" in done.stdout
    events = searches(1)
    import hashlib

    head = dump(events[:-1]).encode()
    write(tmp_path / "a.jsonl", [*events[:-1], {**events[-1], "sha256": hashlib.sha256(head).hexdigest(), "events": 3}])
    assert here("import", "a.jsonl", "-o", "b.jsonl", "-q").code == 0
    assert here("show", "b.jsonl").code == 0


def test_an_unknown_format_names_the_nearest(tmp_path: Path, here: Cli) -> None:
    (tmp_path / "chat.json").write_text(json.dumps(CHAT))
    done = here("import", "chat.json", "--format", "openai-chatt")
    assert (done.code, "did you mean openai-chat?" in done.stderr) == (3, True)
    assert here("import", "chat.json", "--format", "openai-chat", "-q").code == 0


def test_formats_are_listed(here: Cli) -> None:
    done = here("formats")
    assert done.code == 0
    assert done.stdout.startswith("goldentrace ")
    assert "openai-chat" in {entry["name"] for entry in json.loads(here("formats", "--output-format", "json").stdout)}


def test_lint_finds_defects(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "good.jsonl", searches(2))
    write(
        tmp_path / "bad.jsonl", [*searches(1)[:-1], {"type": "tool_result", "call_id": "nobody", "status": "ok"}, end()]
    )
    assert here("lint", "good.jsonl").code == 0
    done = here("lint", "good.jsonl", "bad.jsonl")
    assert done.code == 2
    assert "GT1401" in done.stdout
    assert here("lint", "bad.jsonl", "--ignore", "GT14").code == 0
    assert here("lint", "bad.jsonl", "--select", "GT1401", "--output-format", "concise").stdout.startswith(
        "bad.jsonl:4"
    )
    done = here("lint", "bad.jsonl", "--select", "GT77")
    assert (done.code, "goldentrace rules" in done.stderr) == (3, True)


def test_lint_goes_on_after_a_file_that_cannot_be_read(tmp_path: Path, here: Cli) -> None:
    write(
        tmp_path / "bad.jsonl", [*searches(1)[:-1], {"type": "tool_result", "call_id": "nobody", "status": "ok"}, end()]
    )
    done = here("lint", "gone.jsonl", "bad.jsonl", "--output-format", "json")
    statuses = {trace["name"]: trace["status"] for trace in json.loads(done.stdout)["traces"]}
    assert (done.code, statuses) == (3, {"gone.jsonl": "unreadable", "bad.jsonl": "changed"})


def test_lint_takes_the_budgets_of_the_scenario(tmp_path: Path, here: Cli) -> None:
    (tmp_path / "goldentrace.yaml").write_text("scenarios: {orders: {budgets: {tool_calls: 1}}}\n")
    write(tmp_path / "a.jsonl", searches(2))
    assert "GT1006" in here("lint", "a.jsonl").stdout


def test_rules_and_codes_are_listed_and_explained(here: Cli) -> None:
    listed = json.loads(here("rules", "--output-format", "json").stdout)["rules"]
    codes = [rule["code"] for rule in listed]
    assert {"GT101", "GT1401"} <= set(codes)
    assert all(rule["summary"] for rule in listed)
    for code in ("GT101", "gt101", "argument-changed", "GT1401"):
        assert here("explain", code).code == 0, code


@pytest.mark.parametrize("name", ["trace", "golden", "config", "profile", "report"])
def test_schemas_are_printed(here: Cli, name: str) -> None:
    document = json.loads(here("schema", name).stdout)
    assert document["$schema"].endswith("schema")
    assert name in here("schema").stdout.split()


def test_fmt_brings_a_golden_into_canonical_form(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(2))
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    golden = tmp_path / "goldens/orders.jsonl"
    canonical = golden.read_bytes()
    golden.write_bytes(b"\xef\xbb\xbf" + canonical.replace(b",", b", ").replace(b"\n", b"\r\n\r\n"))
    edited = golden.read_bytes()
    done = here("fmt", "--check")
    assert (done.code, golden.read_bytes()) == (2, edited)
    assert "goldens/orders.jsonl: not in canonical form" in done.stdout
    assert here("fmt").code == 0
    assert golden.read_bytes() == canonical
    assert (here("fmt").code, golden.read_bytes()) == (0, canonical)
    assert here("fmt", "--check").code == 0


def test_fmt_does_not_renumber(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", [start(), *call(1, "a", x=1), *call(2, "a", x=2), end()])
    write(tmp_path / "b.jsonl", [start(), *call(1, "a", x=2), *call(2, "a", x=3), end()])
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    assert here("record", "orders", "--from", "b.jsonl").code == 0
    golden = (tmp_path / "goldens/orders.jsonl").read_text()
    assert "a#3" in golden
    assert here("fmt").code == 0
    assert (tmp_path / "goldens/orders.jsonl").read_text() == golden


def test_fmt_finds_a_secret(tmp_path: Path, here: Cli) -> None:
    secret = "sk-" + "a1B2" * 10
    write(tmp_path / "a.jsonl", searches(1))
    assert here("record", "orders", "--from", "a.jsonl", "--description", f"with {secret}").code == 0
    done = here("fmt", "--check")
    assert done.code == 2
    assert "goldens/orders.jsonl:1: a secret in clear (provider-key)" in done.stdout
    assert secret not in done.stdout + done.stderr


def test_fmt_writes_nothing_in_ci(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    assert here("record", "orders", "--from", "a.jsonl").code == 0
    golden = tmp_path / "goldens/orders.jsonl"
    golden.write_bytes(golden.read_bytes().replace(b",", b", "))
    before = files_in(tmp_path)
    assert here("fmt", env={"CI": "true"}).code == 3
    assert here("fmt", "--check", env={"CI": "true"}).code == 2
    assert files_in(tmp_path) == before


def test_fmt_goes_on_after_damage_and_says_3(tmp_path: Path, here: Cli) -> None:
    write(tmp_path / "a.jsonl", searches(1))
    for name in ("x", "y"):
        assert here("record", name, "--from", "a.jsonl").code == 0
    (tmp_path / "goldens/x.jsonl").write_text("<<<<<<< ours\n")
    golden = tmp_path / "goldens/y.jsonl"
    golden.write_bytes(golden.read_bytes().replace(b",", b", "))
    done = here("fmt", "--check")
    assert done.code == 3
    assert "goldens/x.jsonl:1" in done.stderr
    assert "goldens/y.jsonl: not in canonical form" in done.stdout


def test_fmt_takes_profiles(tmp_path: Path, here: Cli) -> None:
    (tmp_path / "normalizers").mkdir()
    profile = tmp_path / "normalizers/shop@1.yaml"
    profile.write_text("name: shop@1   \nids: {keys: [a]}  # why\n\n")
    assert here("fmt", "--check").code == 2
    assert here("fmt").code == 0
    assert profile.read_text() == "name: shop@1\nids: {keys: [a]}  # why\n"
    profile.write_text("name: shop@1\nidz: {}\n")
    done = here("fmt", "--check")
    assert (done.code, "shop@1.yaml:2 $.idz" in done.stderr) == (3, True)


def test_init_writes_a_project_that_works_and_never_overwrites(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / ".gitattributes").write_text("*.png binary")
    done = cli("init", "--with-ci")
    assert done.code == 0, done.stderr
    assert (tmp_path / ".gitattributes").read_text().startswith("*.png binary\n# Goldens")
    assert "eol=lf" in (tmp_path / ".gitattributes").read_text()
    assert "goldentrace check" in (tmp_path / ".github/workflows/goldentrace.yml").read_text()
    first = (tmp_path / "goldentrace.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=.goldentrace/goldentrace.schema.json"
    assert json.loads((tmp_path / ".goldentrace/goldentrace.schema.json").read_text())["type"] == "object"
    before = files_in(tmp_path)
    again = cli("init", "--with-ci")
    assert (again.code, files_in(tmp_path)) == (0, before)
    import sys

    config = tmp_path / "goldentrace.yaml"
    config.write_text(config.read_text().replace("python3", sys.executable))
    assert cli("record", "example").code == 0
    assert cli("check").code == 0
