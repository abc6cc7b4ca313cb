"""Archives as sources: every member a document of its own, in the order of the names, bounded whatever they claim."""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import random
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import zstandard

from goldentrace.errors import InputError, NoTraceError
from goldentrace.sources import archivefaults, tararchive, ziparchive
from goldentrace.sources.choice import left_out_note, one_trace, told_apart
from goldentrace.sources.document import Document
from goldentrace.sources.registry import document_traces, read_traces

FIXTURES = Path(__file__).parent / "fixtures"
Files = dict[str, bytes]


def chat(text: str) -> bytes:
    """A file with one run of one call."""
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": text},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def zipped(files: Files, **entry: Any) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            for field, value in entry.items():
                setattr(info, field, value)
            file.writestr(info, data)
    return packed.getvalue()


def tarred(files: Files, *links: tarfile.TarInfo, form: int = tarfile.PAX_FORMAT) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as file:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
        for link in links:
            file.addfile(link)
    return packed.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


KINDS: dict[str, Callable[[Files], bytes]] = {
    "zip": zipped,
    "tar": tarred,
    "tar of GNU": lambda files: tarred(files, form=tarfile.GNU_FORMAT),
    "tar.gz": lambda files: gzip.compress(tarred(files)),
    "tar.bz2": lambda files: bz2.compress(tarred(files)),
    "tar.xz": lambda files: lzma.compress(tarred(files)),
    "tar.zst": lambda files: zstandard.compress(tarred(files)),
}
every_kind = pytest.mark.parametrize("pack", KINDS.values(), ids=KINDS)
zip_and_tar = pytest.mark.parametrize("pack", [zipped, tarred], ids=["zip", "tar"])


def document_of(data: bytes, **options: Any) -> Document:
    return Document.of(data, "runs", **options)


def paths(data: bytes, format_name: str | None = None) -> list[str]:
    return [trace.path for trace in document_traces(document_of(data), format_name)]


def refusal(data: bytes, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        list(document_traces(document_of(data, **options)))
    return caught.value


# --- what is read ---------------------------------------------------------------------------------------------------


@every_kind
def test_each_member_is_read_as_the_file_that_it_was(pack: Callable[[Files], bytes], tmp_path: Path) -> None:
    sources = [
        FIXTURES / "tau_bench" / "runs.json",
        FIXTURES / "openai_chat" / "conversations.jsonl",
        FIXTURES / "codex" / "rollout.jsonl",
    ]
    path = tmp_path / "archive"  # the suffix decides nothing
    path.write_bytes(pack({f"run/{source.name}": source.read_bytes() for source in sources}))
    expected = [
        (f"{path}!run/{source.name}", trace.lines, trace.events)
        for source in sorted(sources, key=lambda each: each.name)
        for trace in read_traces(source)
    ]
    assert [(trace.path, trace.lines, trace.events) for trace in read_traces(path)] == expected


def test_real_files_give_the_same_events(corpus: Path, tmp_path: Path) -> None:
    files = sorted(
        path for path in (corpus / "formats" / "claude_code").glob("*.jsonl") if path.stat().st_size < 1_000_000
    )[:4]
    files += sorted(path for path in (corpus / "formats" / "openai_chat").glob("*") if path.is_file())[:6]
    wanted: dict[str, list[Any]] = {}
    for file in files:
        try:
            wanted[file.name] = [trace.events for trace in islice(read_traces(file), 20)]
        except NoTraceError:
            continue
    assert len(wanted) > 3
    for kind in ("zip", "tar.xz"):
        path = tmp_path / kind
        path.write_bytes(KINDS[kind]({file.name: file.read_bytes() for file in files if file.name in wanted}))
        found: dict[str, list[Any]] = {}
        for trace in read_traces(path):
            found.setdefault(trace.path.rpartition("!")[2], []).append(trace.events)
        assert {name: traces[:20] for name, traces in found.items()} == wanted


@every_kind
def test_the_order_is_that_of_the_names(pack: Callable[[Files], bytes]) -> None:
    names = ["b.jsonl", "a/z.jsonl", "c.jsonl", "a.jsonl"]
    assert paths(pack({name: chat(name) for name in names})) == [f"runs!{name}" for name in sorted(names)]


def test_the_tar_of_a_folder_itself_has_the_names_of_its_files() -> None:
    data = tarred({"./b.jsonl": chat("b"), "./in/a.jsonl": chat("a")})
    assert paths(data) == ["runs!b.jsonl", "runs!in/a.jsonl"]
    assert one_trace(document_of(data), "in/a.jsonl").path == "runs!in/a.jsonl"
    assert refusal(tarred({"./a": chat("x"), "a": chat("y")})).what == "two members have this name"


@zip_and_tar
def test_compressed_members_are_read_through(pack: Callable[[Files], bytes]) -> None:
    data = chat("hello")
    packed = {
        "a.gz": gzip.compress(data),
        "b.zst": zstandard.compress(data),
        "c.xz": lzma.compress(data),
        "d.bz2": bz2.compress(data),
    }
    document = document_of(pack(packed))
    assert [(trace.path, len(trace.calls())) for trace in document_traces(document)] == [
        (f"runs!{name}", 1) for name in packed
    ]
    assert document.left_out == []


NO_RUNS = {
    "README.md": b"# Runs\n",
    "config.json": b'{"model": "m"}',
    "a.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 99,
    "__MACOSX/._a.jsonl": b"\0\5\x16\7\0\2\0\0Mac OS X",
    "empty": b"",
}


@every_kind
def test_members_without_a_run_are_left_out_and_counted(pack: Callable[[Files], bytes]) -> None:
    document = document_of(pack({**NO_RUNS, "run.jsonl": chat("x"), "z.txt": b"notes"}))
    assert [trace.path for trace in document_traces(document)] == ["runs!run.jsonl"]
    assert document.left_out == sorted([*NO_RUNS, "z.txt"])
    assert (
        left_out_note(document)
        == "runs: no run found in 6 members: README.md, __MACOSX/._a.jsonl, a.png, config.json, empty, …"
    )
    assert (
        left_out_note(document, is_full=True)
        == "runs: no run found in 6 members: README.md, __MACOSX/._a.jsonl, a.png, config.json, empty, z.txt"
    )


def test_links_and_devices_are_left_out_and_lead_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(chat("secret"))
    links = [
        special("hard", tarfile.LNKTYPE, "run.jsonl"),
        special("soft.jsonl", tarfile.SYMTYPE, str(secret)),
        special("null", tarfile.CHRTYPE),
        special("pipe", tarfile.FIFOTYPE),
    ]
    document = document_of(tarred({"run.jsonl": chat("x")}, special("folder", tarfile.DIRTYPE), *links))
    assert [trace.path for trace in document_traces(document)] == ["runs!run.jsonl"]
    assert document.left_out == ["hard", "null", "pipe", "soft.jsonl"], "a folder holds nothing by itself"
    link = zipped({"soft.jsonl": str(secret).encode()}, external_attr=0o120777 << 16)
    assert refusal(link).what == "the archive holds no trace"


@every_kind
def test_an_archive_without_a_run_is_refused(pack: Callable[[Files], bytes]) -> None:
    error = refusal(pack(NO_RUNS))
    assert (error.what, str(error.where)) == ("the archive holds no trace", "runs")


def test_an_archive_without_members_is_refused() -> None:
    assert refusal(zipped({})).what == "the archive holds no trace"
    assert refusal(tarred({}, special("folder", tarfile.DIRTYPE))).what == "the archive holds no trace"


@zip_and_tar
def test_a_file_whose_format_finds_no_run_in_it_is_left_out(pack: Callable[[Files], bytes]) -> None:
    row = {"type": "progress", "uuid": "p", "parentUuid": None, "sessionId": "s"}
    document = document_of(pack({"idle.jsonl": json.dumps(row).encode() + b"\n", "run.jsonl": chat("x")}))
    assert len(list(document_traces(document))) == 1
    assert document.left_out == ["idle.jsonl"]


@pytest.mark.parametrize("inner", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("format_name", [None, "openai-chat"])
def test_an_archive_within_an_archive_is_refused_by_name(
    inner: Callable[[Files], bytes], format_name: str | None
) -> None:
    document = document_of(tarred({"deep/inner": inner({"run.jsonl": chat("x")})}))
    with pytest.raises(InputError, match="an archive within an archive") as caught:
        list(document_traces(document, format_name))
    assert str(caught.value.where) == "runs!deep/inner"


def test_a_zip_that_is_compressed_once_more_is_refused() -> None:
    assert refusal(gzip.compress(zipped({"run.jsonl": chat("x")}))).what == "a zip within a compressed file"


def test_a_log_of_inspect_stays_one_and_may_be_a_member(tmp_path: Path) -> None:
    library = pytest.importorskip("inspect_ai.log")
    log = (FIXTURES / "inspect_log" / "log.json").read_bytes()
    library.write_eval_log(library.EvalLog.model_validate_json(log), str(tmp_path / "log.eval"))
    data = (tmp_path / "log.eval").read_bytes()
    alone = [trace.events for trace in document_traces(Document.of(data, "log"))]
    assert [trace.path for trace in document_traces(Document.of(data, "log"))] == ["log"] * len(alone)
    for pack in (zipped, tarred):
        document = document_of(pack({"logs/one.bin": data}))
        assert [trace.events for trace in document_traces(document)] == alone


def test_a_folder_called_samples_makes_no_log_of_inspect() -> None:
    assert paths(zipped({"samples/1.jsonl": chat("x")})) == ["runs!samples/1.jsonl"]


@zip_and_tar
def test_a_named_format_is_that_of_the_members_that_it_fits(pack: Callable[[Files], bytes]) -> None:
    files = {
        "README.md": b"# Runs\n",
        "chat.jsonl": chat("x"),
        "runs.json": (FIXTURES / "tau_bench" / "runs.json").read_bytes(),
    }
    assert paths(pack(files), "tau-bench") == ["runs!runs.json"] * 2
    assert paths(pack(files), "openai-chat") == ["runs!chat.jsonl"]
    with pytest.raises(NoTraceError, match="no trace of the format codex"):
        paths(pack(files), "codex")


@zip_and_tar
def test_subagents_of_a_session_are_read_with_it_and_not_again(pack: Callable[[Files], bytes], tmp_path: Path) -> None:
    def row(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> str:
        message = {"role": kind, "content": content} | ({"id": uuid} if kind == "assistant" else {})
        return (
            json.dumps(
                {
                    "type": kind,
                    "uuid": uuid,
                    "parentUuid": parent,
                    "sessionId": "s",
                    "timestamp": "2026-01-01T10:00:00Z",
                    "message": message,
                    **more,
                }
            )
            + "\n"
        )

    task = {"type": "tool_use", "id": "task", "name": "Agent", "input": {"prompt": "go"}}
    done = {"type": "tool_result", "tool_use_id": "task", "content": "done"}
    side = {"isSidechain": True, "agentId": "one"}
    leaf = {"type": "tool_use", "id": "leaf", "name": "Read", "input": {}}
    files = {
        "p/s.jsonl": row("user", "u", None, "x")
        + row("assistant", "a", "u", [task])
        + row("user", "r", "a", [done], toolUseResult={"agentId": "one"}),
        "p/s/subagents/agent-one.jsonl": row("user", "p", None, "go", **side)
        + row("assistant", "c", "p", [leaf], **side),
        "q/agent-one.jsonl": row("user", "p", None, "go", **side) + row("assistant", "c", "p", [leaf], **side),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    first, other = document_traces(document_of(pack({name: text.encode() for name, text in files.items()})))
    (session,) = read_traces(tmp_path / "p" / "s.jsonl")
    assert [call.call_id for call in session.calls()] == ["task", "leaf"]
    assert (first.path, first.events) == ("runs!p/s.jsonl", session.events)
    assert other.path == "runs!q/agent-one.jsonl", "no session has it beside it"


def test_a_member_too_large_to_be_held_is_read_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"{number}.jsonl": chat("x" * 3000 * number) for number in (3, 1, 2)}
    packed = gzip.compress(tarred(files))
    whole = [(trace.path, trace.events) for trace in document_traces(document_of(packed))]
    for kept_bytes in (0, 4000, 8000):
        monkeypatch.setattr(tararchive, "KEPT_BYTES", kept_bytes)
        assert [(trace.path, trace.events) for trace in document_traces(document_of(packed))] == whole


def test_an_archive_is_read_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tararchive, "KEPT_BYTES", 4_000_000)
    files = {f"{number:03}.jsonl": chat(f"{number}" + "x" * 1_000_000) for number in range(40)}
    for kind in ("zip", "tar.gz"):
        path = tmp_path / kind
        path.write_bytes(KINDS[kind](files))
        tracemalloc.start()
        try:
            assert sum(1 for _ in read_traces(path)) == 40
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak_bytes < 20_000_000, "of 40 MB"


def test_the_progress_is_that_of_all_members(tmp_path: Path) -> None:
    files = {f"{number}.jsonl": chat("x" * 100_000) for number in range(5)}
    path = tmp_path / "runs.zip"
    path.write_bytes(zipped(files))
    told: list[int] = []
    assert len(list(read_traces(path, on_progress=told.append))) == 5
    assert told == sorted(told)
    assert told[-1] == sum(map(len, files.values()))


# --- which trace is meant -------------------------------------------------------------------------------------------


def test_traces_are_told_apart_by_member_and_then_by_name() -> None:
    two = (FIXTURES / "openai_chat" / "conversations.jsonl").read_bytes()
    data = zipped({"one.jsonl": chat("x"), "two.jsonl": two, "zwei.jsonl": two})
    names = [name for _, name in told_apart(document_traces(document_of(data)), document_of(data))]
    assert names == ["one.jsonl", "two.jsonl one", "two.jsonl two", "zwei.jsonl one", "zwei.jsonl two"]
    for name in names:
        trace = one_trace(document_of(data), name)
        assert trace.path == f"runs!{name.partition(' ')[0]}"
    assert one_trace(document_of(data), "two.jsonl two").start.trace_id == "two"


@pytest.mark.parametrize(
    ("wanted", "listed"),
    [
        (None, "(one.jsonl, two.jsonl one, …)"),
        ("two", "(two.jsonl two, zwei.jsonl two, …)"),
        ("two.jsonl", "(two.jsonl one, two.jsonl two, …)"),
    ],
)
def test_an_open_choice_lists_names_that_settle_it(wanted: str | None, listed: str) -> None:
    two = (FIXTURES / "openai_chat" / "conversations.jsonl").read_bytes()
    with pytest.raises(InputError, match="holds several traces") as caught:
        one_trace(document_of(zipped({"one.jsonl": chat("x"), "two.jsonl": two, "zwei.jsonl": two})), wanted)
    assert listed in caught.value.next_step


def test_a_name_that_no_trace_has_lists_what_there_is() -> None:
    with pytest.raises(InputError, match="holds no trace 'b'") as caught:
        one_trace(document_of(zipped({"a.jsonl": chat("x"), "c.jsonl": chat("x")})), "b")
    assert caught.value.next_step == "it holds a.jsonl, c.jsonl"


# --- bounds ---------------------------------------------------------------------------------------------------------


@every_kind
def test_the_limit_holds_for_all_members_together(pack: Callable[[Files], bytes]) -> None:
    files = {f"{number}.jsonl": chat("x" * 300_000) for number in range(4)}
    data = pack(files)
    size_bytes = len(tarred(files))
    assert len(list(document_traces(document_of(data, max_bytes=size_bytes)))) == 4
    error = refusal(data, max_bytes=1_000_000)
    assert "limit of 1,000,000 bytes" in error.what
    assert "--max-bytes" in error.next_step


def test_what_is_read_more_than_once_counts_once() -> None:
    data = chat("x" * 400_000)
    assert (
        len(list(document_traces(document_of(zipped({"a.jsonl": data, "b.jsonl": data}), max_bytes=2 * len(data)))))
        == 2
    )


@pytest.mark.parametrize("claimed_bytes", [10, 1 << 31])
def test_a_bomb_in_a_zip_meets_the_limit_whatever_it_claims(claimed_bytes: int) -> None:
    data = bytearray(zipped({"bomb.jsonl": chat("0" * 30_000_000)}))
    table = data.rindex(b"PK\1\2")
    data[table + 24 : table + 28] = struct.pack("<I", claimed_bytes)
    assert len(data) < 100_000
    error = refusal(bytes(data), max_bytes=1_000_000)
    assert (str(error.where), "limit" in error.what or "damaged" in error.what) == ("runs!bomb.jsonl", True)


@zip_and_tar
def test_a_bomb_of_zstd_or_bzip2_in_a_member_meets_the_limit(pack: Callable[[Files], bytes]) -> None:
    bomb = bytes(100_000_000)
    for compress in (zstandard.compress, bz2.compress, gzip.compress, lambda data: lzma.compress(data, preset=0)):
        data = pack({"bomb": compress(bomb)})
        tracemalloc.start()
        try:
            error = refusal(data, max_bytes=1_000_000)
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (str(error.where), "limit of 1,000,000" in error.what) == ("runs!bomb", True)
        assert peak_bytes < 80_000_000, "one step of zstd, twice"


def test_members_that_share_their_bytes_are_refused() -> None:
    data = bytearray(zipped({"a.jsonl": chat("a"), "b.jsonl": chat("b")}))
    second = data.rindex(b"PK\1\2")
    data[second + 42 : second + 46] = bytes(4)  # its bytes begin where those of the first do
    assert refusal(bytes(data)).what == "shares its bytes with another member"


@zip_and_tar
def test_too_many_members_are_refused(pack: Callable[[Files], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archivefaults, "MAX_MEMBERS", 3)
    assert len(paths(pack({f"{number}": chat("x") for number in range(3)}))) == 3
    assert refusal(pack({f"{number}": chat("x") for number in range(4)})).what == "more than 3 members"


def test_a_table_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped({f"{number}": chat("x") for number in range(20)})
    assert len(paths(data)) == 20
    monkeypatch.setattr(ziparchive, "TABLE_BYTES", 800)
    assert "its table is larger than 800 bytes" in refusal(data).what


def test_a_header_that_is_too_long_is_not_read() -> None:
    info = tarfile.TarInfo("run.jsonl")
    info.pax_headers = {"comment": "0" * 1_000_000}
    assert "a header of more than" in refusal(tarred({"a.jsonl": chat("x")}, info)).what


def test_headers_of_headers_without_end_are_refused() -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 512
    block = info.tobuf(tarfile.GNU_FORMAT) + b"n" * 512
    assert "damaged" in refusal(tarred({"a.jsonl": chat("x")}).rstrip(b"\0").ljust(1536, b"\0") + block * 5000).what


# --- damage ---------------------------------------------------------------------------------------------------------


@every_kind
def test_damage_within_a_member_names_it_and_the_line(pack: Callable[[Files], bytes]) -> None:
    lines = chat("x").splitlines(keepends=True)
    broken = lines[0] + b"{oops}\n" + b"".join(lines[1:])
    files = {"a.jsonl": chat("a"), "in/b.jsonl": chat("b").replace(lines[1], lines[1] + b"{oops}\n")}
    assert broken != files["in/b.jsonl"]
    assert str(refusal(pack(files)).where) == "runs!in/b.jsonl:3"


def test_a_torn_last_line_makes_the_trace_of_the_member_incomplete() -> None:
    traces = list(
        document_traces(document_of(zipped({"a.jsonl": chat("x") + b'{"role": "assis', "b.jsonl": chat("x")})))
    )
    assert [trace.incomplete is None for trace in traces] == [False, True]


def test_a_wrong_checksum_is_told() -> None:
    data = bytearray(zipped({"a.jsonl": chat("x")}))
    table = data.rindex(b"PK\1\2")
    data[table + 16] ^= 1
    error = refusal(bytes(data))
    assert ("Bad CRC-32" in error.what, str(error.where)) == (True, "runs!a.jsonl")


def test_an_encrypted_member_is_told() -> None:
    data = bytearray(zipped({"a.jsonl": chat("x"), "b.jsonl": chat("x")}))
    data[data.rindex(b"PK\1\2") + 8] |= 1
    error = refusal(bytes(data))
    assert (error.what, str(error.where), "password" in error.next_step) == ("is encrypted", "runs!b.jsonl", True)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 93, 99])
def test_a_method_of_packing_that_is_not_read_is_told(method: int) -> None:
    data = bytearray(zipped({"a.jsonl": chat("x")}))
    table = data.rindex(b"PK\1\2")
    data[table + 10 : table + 12] = struct.pack("<H", method)
    assert refusal(bytes(data)).what == f"is packed by method {method} of zip, which is not read"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("a.jsonl", chat("x"))
        file.writestr("a.jsonl", chat("y"))
    whole = tarred({"a.jsonl": chat("x")})
    member = whole[: 512 + -(-len(chat("x")) // 512) * 512]
    for twice in (packed.getvalue(), member + whole):
        error = refusal(twice)
        assert (error.what, str(error.where)) == ("two members have this name", "runs!a.jsonl")


@every_kind
def test_an_archive_that_is_cut_off_is_refused(pack: Callable[[Files], bytes]) -> None:
    noise = random.Random(5)
    data = pack({f"{number}.jsonl": chat("".join(noise.choices("abcdefgh", k=20_000))) for number in range(4)})
    for share in (0.05, 0.3, 0.5, 0.7, 0.85):
        error = refusal(data[: int(len(data) * share)])
        assert "damaged" in error.what or "cut off" in error.what


def test_a_tar_that_ends_between_two_members_is_cut_off() -> None:
    data = tarred({"a.jsonl": chat("x")})
    assert "cut off" in refusal(data[: 512 + -(-len(chat("x")) // 512) * 512]).what


def header(**fields: int) -> bytes:
    """A header of a tar with numbers as they are written in it, whatever they are."""
    info = tarfile.TarInfo("run.jsonl")
    data = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    data[124:136] = (
        b"\x80" + fields["size"].to_bytes(11, "big")
        if fields["size"] >= 0
        else b"\xff" + (256**11 + fields["size"]).to_bytes(11, "big")
    )
    data[148:156] = b"%06o\0 " % (256 + sum(data[:148]) + sum(data[156:512]))
    return bytes(data)


@pytest.mark.parametrize("size", [1000, 1 << 20, 1 << 62, 1 << 85, -1, -512, -5000])
def test_a_tar_that_lies_about_sizes_is_refused(size: int) -> None:
    for data in (
        header(size=size) + chat("x")[:300],
        header(size=size) + bytes(1024),
        tarred({"a.jsonl": chat("x")})[:1024] + header(size=size) + chat("x"),
    ):
        error = refusal(data)
        assert "damaged" in error.what or "cut off" in error.what


def test_a_damaged_header_in_the_middle_is_not_the_end() -> None:
    data = bytearray(tarred({"a.jsonl": chat("a"), "b.jsonl": chat("b")}))
    data[data.index(b"b.jsonl")] ^= 1
    assert "damaged" in refusal(bytes(data)).what


def test_what_follows_the_end_of_a_tar_is_not_passed_over() -> None:
    data = tarred({"a.jsonl": chat("a")})
    assert "follows the end" in refusal(data + data).what
    assert "damaged" in refusal(gzip.compress(data)[:-4]).what, "the checksum stands behind the end"


@every_kind
def test_names_are_only_shown(pack: Callable[[Files], bytes], tmp_path: Path) -> None:
    names = ["../../out.jsonl", "/etc/run.jsonl", "a\x1b[31m.jsonl", "b/./c.jsonl"]
    found = paths(pack({name: chat(name) for name in names}))
    assert found == ["runs!../../out.jsonl", "runs!/etc/run.jsonl", "runs!a\\x1b[31m.jsonl", "runs!b/./c.jsonl"]
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_utf_8_is_shown() -> None:
    data = bytearray(tarred({"n@me.jsonl": chat("x")}, form=tarfile.GNU_FORMAT))
    data[1] = 0xFF
    data[148:156] = b"%06o\0 " % (256 + sum(data[:148]) + sum(data[156:512]))
    assert paths(bytes(data)) == ["runs!n\\udcffme.jsonl"]


@pytest.mark.parametrize("examples", [60, pytest.param(3000, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
@every_kind
def test_bytes_that_flipped_or_end_early_give_traces_or_a_refusal(
    pack: Callable[[Files], bytes], examples: int
) -> None:
    draw = random.Random(f"archives {examples}")
    data = pack(
        {
            "a.jsonl": chat("a"),
            "README.md": b"# Runs\n",
            "b/runs.json": (FIXTURES / "tau_bench" / "runs.json").read_bytes(),
            "l" * 150: chat("long"),
        }
    )
    for _ in range(examples):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        end = draw.choice([len(damaged), draw.randrange(1, len(damaged))])
        with contextlib.suppress(InputError):
            list(document_traces(document_of(bytes(damaged[:end]), max_bytes=10_000_000)))


def test_a_decoder_of_xz_takes_no_more_memory_than_it_may() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]
    with pytest.raises(InputError, match="Memory usage limit"):
        document_of(lzma.compress(chat("x"), filters=filters)).read()
