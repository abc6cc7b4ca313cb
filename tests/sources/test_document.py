"""Opening files: bounds, framings, damage; each refusal is an InputError that says where."""

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from goldentrace.errors import InputError
from goldentrace.sources import document as document_module
from goldentrace.sources.document import Document, open_document

LINES = b'{"a":1}\n{"b":2}\n'


def write(folder: Path, data: bytes) -> Path:
    path = folder / "input"
    path.write_bytes(data)
    return path


def values(document: Document) -> list[tuple[int, object]]:
    return list(document.records())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        open_document(tmp_path / "absent.jsonl")
    assert caught.value.what == "no such file"
    assert str(caught.value.where) == str(tmp_path / "absent.jsonl")


@pytest.mark.parametrize("data", [b"", b"  \n\n\t"], ids=["nothing", "white space"])
def test_an_empty_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError, match="empty"):
        open_document(write(tmp_path, data))


def test_a_folder_and_a_device_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        open_document(tmp_path)
    with pytest.raises(InputError, match="no regular file"):
        open_document(os.devnull)


def test_a_name_that_no_file_can_have_is_an_input_error() -> None:
    with pytest.raises(InputError):
        open_document("a\0b")
    with pytest.raises(InputError):
        open_document("x" * 5000)


def test_an_unreadable_file_is_an_input_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, LINES)

    def refuse(*_: object, **__: object) -> io.BufferedReader:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        open_document(path)


def test_a_file_beyond_the_limit_names_limit_and_option(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        open_document(write(tmp_path, b"x" * 2000), max_bytes=1999)
    assert "1,999 bytes" in caught.value.what
    assert "--max-bytes" in caught.value.next_step
    assert open_document(write(tmp_path, b"x" * 2000), max_bytes=2000).read() == b"x" * 2000


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress], ids=["gzip", "bzip2", "xz", "zstd"])
def test_compressed_files_are_read_through(tmp_path: Path, pack) -> None:
    document = open_document(write(tmp_path, pack(LINES)))
    assert values(document) == [(1, {"a": 1}), (2, {"b": 2})]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress], ids=["gzip", "bzip2", "xz", "zstd"])
def test_a_compression_bomb_meets_the_limit(tmp_path: Path, pack) -> None:
    bomb = write(tmp_path, pack(b" " * 30_000_000 + b"{}"))
    assert bomb.stat().st_size < 100_000
    with pytest.raises(InputError, match="larger than the limit"):
        open_document(bomb, max_bytes=1_000_000).read()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress], ids=["gzip", "bzip2", "xz", "zstd"])
def test_damaged_compressed_data_is_an_input_error(tmp_path: Path, pack) -> None:
    packed = bytearray(pack(b"".join(b'{"number": %d}\n' % (n * n) for n in range(50_000))))
    packed[2000:2400] = bytes(400)
    with pytest.raises(InputError, match=r"damaged|cannot be read"):
        open_document(write(tmp_path, bytes(packed))).read()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress], ids=["gzip", "bzip2", "xz", "zstd"])
@pytest.mark.parametrize("lost_bytes", [1, 40, 2000])
def test_a_compressed_file_that_was_cut_off_is_an_input_error(tmp_path: Path, pack, lost_bytes: int) -> None:
    with pytest.raises(InputError, match="damaged"):
        open_document(write(tmp_path, pack(os.urandom(5000))[:-lost_bytes])).read()


def test_compressed_parts_follow_one_another(tmp_path: Path) -> None:
    for pack in (zstandard.compress, lzma.compress, bz2.compress, gzip.compress):
        assert open_document(write(tmp_path, pack(LINES[:8]) + pack(LINES[8:]))).read() == LINES


def test_lines_keep_their_number_over_blank_ones() -> None:
    document = Document.of(b'\n{"a":1}\r\n\r\n  \n{"b":2}')
    assert values(document) == [(2, {"a": 1}), (5, {"b": 2})]


def test_a_bom_is_not_part_of_the_first_value() -> None:
    assert values(Document.of(b"\xef\xbb\xbf" + LINES)) == [(1, {"a": 1}), (2, {"b": 2})]
    assert Document.of(b'\xef\xbb\xbf{"a": 1}').json() == {"a": 1}


def test_a_torn_last_line_is_dropped_and_told() -> None:
    document = Document.of(LINES + b'{"c": "cut o')
    assert values(document) == [(1, {"a": 1}), (2, {"b": 2})]
    assert document.torn is not None
    assert document.torn.line == 3


def test_only_the_last_line_may_be_torn() -> None:
    with pytest.raises(InputError) as caught:
        values(Document.of(b'{"a":1}\n{"c": "cut o\n{"b":2}\n', "log.jsonl"))
    assert str(caught.value.where) == "log.jsonl:2"


def test_a_bad_last_line_with_its_line_end_is_no_torn_one() -> None:
    with pytest.raises(InputError):
        values(Document.of(LINES + b'{"c": oops}\n'))


def test_invalid_utf8_names_file_and_line() -> None:
    with pytest.raises(InputError, match="UTF-8") as caught:
        values(Document.of(LINES + b'{"c":"\xff"}\n', "log.jsonl"))
    assert str(caught.value.where) == "log.jsonl:3"
    with pytest.raises(InputError, match="UTF-8") as caught:
        Document.of(b'{\n"a":\n"\xc3("}', "one.json").json()
    assert str(caught.value.where) == "one.json:3"


def test_damage_in_one_document_names_its_line() -> None:
    with pytest.raises(InputError) as caught:
        values(Document.of(b'{\n "a": 1,\n "b": oops\n}', "one.json"))
    assert str(caught.value.where) == "one.json:3"


def test_values_one_after_another_are_read_with_their_lines() -> None:
    document = Document.of(b'{\n "a": 1\n}\n{\n "b": [2]\n}{"c":3}\n')
    assert values(document) == [(1, {"a": 1}), (4, {"b": [2]}), (6, {"c": 3})]


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, '{"a":' * 5000 + "1" + "}" * 5000], ids=["arrays", "objects"])
def test_deep_nesting_is_an_input_error(text: str) -> None:
    for data in (text.encode(), b'{"a":1}\n' + text.encode() + b"\n"):
        with pytest.raises(InputError, match="nested deeper than"):
            values(Document.of(data))


def test_an_integer_of_too_many_digits_is_an_input_error() -> None:
    with pytest.raises(InputError, match="digits"):
        values(Document.of(b'{"a":' + b"9" * 5000 + b"}"))


def test_a_line_beyond_its_limit_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_module, "MAX_LINE_BYTES", 100)
    document = Document.of(LINES + b'{"c":"' + b"x" * 200 + b'"}\n')
    with pytest.raises(InputError, match="100 bytes") as caught:
        values(document)
    assert caught.value.where is not None
    assert caught.value.where.line == 3


def test_standard_input_is_read_more_than_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(LINES)))
    document = open_document("-")
    assert document.name == "<stdin>"
    assert values(document) == values(document) == [(1, {"a": 1}), (2, {"b": 2})]


def test_standard_input_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"x" * 5000)))
    with pytest.raises(InputError, match="larger than the limit"):
        open_document("-", max_bytes=1000)


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(LINES,), daemon=True)
    writer.start()
    document = open_document(pipe)
    writer.join(timeout=10)
    assert values(document) == [(1, {"a": 1}), (2, {"b": 2})]


def test_progress_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[int] = []
    path = write(tmp_path, b"".join(json.dumps({"n": n}).encode() + b"\n" for n in range(200_000)))
    document = open_document(path, on_progress=told.append)
    told.clear()
    assert sum(1 for _ in document.lines()) == 200_000
    assert told == sorted(told)
    assert told[-1] == path.stat().st_size
