"""`goldentrace import`: a foreign format to goldentrace/1."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import msgspec

from goldentrace.cli.options import max_bytes_option, option, output_options, packed
from goldentrace.cli.output import Output
from goldentrace.cli.progress import reading_bar
from goldentrace.cli.terminal import columns, is_colored, width_of
from goldentrace.codec.canonical import JsonError, decode
from goldentrace.codec.config import check_name
from goldentrace.codec.trace import encode_event
from goldentrace.errors import ConfigError, InputError, Where
from goldentrace.exitcodes import OK
from goldentrace.model.event import ABSENT, FORMAT, TraceEnd
from goldentrace.model.trace import Trace
from goldentrace.sources.bytestream import BLOCK_BYTES
from goldentrace.sources.choice import left_out_note, one_trace, told_apart
from goldentrace.sources.coverage import coverage_table
from goldentrace.sources.document import MAX_BYTES, Document, open_document
from goldentrace.sources.registry import document_traces
from goldentrace.store.atomic import write_atomically
from goldentrace.store.layout import make_folder
from goldentrace.store.storage import Storage


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. target: file or folder; trace: which one."""

    target: str | None
    source_format: str | None
    trace_id: str | None
    is_list: bool
    max_bytes: int | None


@click.command("import")
@click.argument("file", metavar="FILE")
@packed(
    "request",
    Request,
    option(
        "-o", "--output", "target", metavar="OUT|DIR", help="File to write; a folder where FILE holds several traces."
    ),
    option("--format", "source_format", metavar="NAME", help="Format of FILE; default: detected by content."),
    option("--trace", "trace_id", metavar="ID", help="Import only this trace."),
    option("--list", "is_list", is_flag=True, help="List the traces, write nothing."),
    max_bytes_option,
)
@output_options()
def importing(file: str, request: Request, output: Output) -> int:
    """Convert a trace of any known format to goldentrace/1.

    FILE: a file or an archive of files (zip, tar), compressed or not; - for standard input. What the source did not
    record is said on stderr, with the reason. Without -o the one trace goes to standard output.
    """
    with reading_bar(file, is_quiet=output.verbosity < 0) as on_progress:
        document = open_document(file, max_bytes=request.max_bytes or MAX_BYTES, on_progress=on_progress)
        code = _import(document, request, output)
    left_out = left_out_note(document, is_full=request.is_list or output.verbosity > 0)
    if left_out is not None:
        output.say(f"note: {left_out}")
    return code


def _import(document: Document, request: Request, output: Output) -> int:
    if request.is_list:
        return _list(document, request, output)
    target = None if request.target in (None, "-") else Path(str(request.target))
    if target is not None and (os.path.isdir(target) or str(request.target).endswith("/")):  # noqa: PTH112 - as in fmt
        return _write_each(_traces(document, request), target, output)
    trace = one_trace(document, request.trace_id, request.source_format)
    _check_values(trace)
    _tell(trace, output)
    if target is None:
        for block in _blocks(trace):
            output.put_bytes(block)
    else:
        make_folder(target.parent)
        write_atomically(target, _blocks(trace))
    return OK


def _traces(document: Document, request: Request) -> Iterator[tuple[Trace, str]]:
    """The traces of a file, or the one that is meant, with their names."""
    if request.trace_id is None:
        traces = document_traces(document, request.source_format)
    else:
        traces = iter((one_trace(document, request.trace_id, request.source_format),))
    return told_apart(traces, document)


def _list(document: Document, request: Request, output: Output) -> int:
    rows = []
    for trace, name in _traces(document, request):
        counts = coverage_table(trace)
        rows.append((name, f"{counts.calls} calls", f"{counts.results} results", trace.format))
    if output.format == "json":
        keys = ("trace", "calls", "results", "format")
        listed = [dict(zip(keys, row, strict=True)) for row in rows]
        output.put_json({"command": "import", "traces": listed, "left_out": document.left_out})
    else:
        output.put("".join(f"{line}\n" for line in columns(rows)))
    return OK


def _write_each(traces: Iterator[tuple[Trace, str]], folder: Path, output: Output) -> int:
    make_folder(folder)
    written: set[str] = set()
    for trace, called in traces:
        name = _file_name(_SUFFIXES.sub("", called[:_LONGEST]), written)
        written.add(name.casefold())
        _check_values(trace)
        write_atomically(folder / f"{name}.jsonl", _blocks(trace))
        _tell(trace, output, level=1)
    output.say(f"{len(written)} traces written to {folder}")
    return OK


_SUFFIXES: Final = re.compile(r"(?<=[^/])(?:\.(?:jsonl?|gz|bz2|xz|zst))+(?=\s|$)")
"""What the name of a file of traces ends in, which `.jsonl` takes the place of."""
_LONGEST: Final = 1000
"""Characters of a name that a pattern goes over; a name of a file has some 200."""


def _file_name(name: str, taken: set[str]) -> str:
    """A name as a file name that no earlier trace has; what no file system takes becomes a dash."""
    try:
        check_name(name, "trace")
        plain = name
    except ConfigError:
        plain = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in name)[:100]
        plain = plain.strip(".-") or "trace"
    number, found = 1, plain
    while found.casefold() in taken:
        number += 1
        found = f"{plain}-{number}"
    return found


def _blocks(trace: Trace) -> Iterator[bytes]:
    """The file of a trace in blocks: no secrets, one line an event, and no checksum of lines that were written
    otherwise. A long session never stands in memory as a whole."""
    storage = Storage()
    block = bytearray()
    for event in trace.events:
        plain = storage.event(event)
        if isinstance(plain, TraceEnd):
            plain = msgspec.structs.replace(plain, sha256=None)
        block += encode_event(plain)[:-1].replace(b"\n", b" ") + b"\n"  # white space between tokens of a Raw
        if len(block) >= BLOCK_BYTES:
            yield bytes(block)
            block.clear()
    yield bytes(block)


def _check_values(trace: Trace) -> None:
    """Refuse values that no command could read from the written file. Those of foreign formats were decoded already."""
    if trace.format != FORMAT:
        return
    for index, event in enumerate(trace.events):
        for name in ("args", "result", "value"):
            raw = getattr(event, name, ABSENT)
            if isinstance(raw, msgspec.Raw) and raw != ABSENT:  # the value of a limit is a plain number
                try:
                    decode(raw)
                except JsonError as error:
                    where = Where(trace.path, trace.line_of(index), f"$.{name}")
                    raise InputError(str(error), where=where, next_step="repair the line") from None


def _tell(trace: Trace, output: Output, *, level: int = 0) -> None:
    from goldentrace.report.coverage import render_coverage

    if output.verbosity < level:
        return
    color = is_colored("auto", sys.stderr)
    text = render_coverage(
        coverage_table(trace), trace.path, trace.format, width=width_of(output.width), color=color
    )  # fmt: skip
    with contextlib.suppress(OSError, ValueError):  # as Output.say; the text is safe, and its colours are to be seen
        sys.stderr.write(text)
        sys.stderr.flush()
    for note in trace.notes:
        output.say(f"  note: {note.text}" + (f" (line {note.line})" if note.line is not None else ""))
