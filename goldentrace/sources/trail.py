"""TRAIL: benchmark traces of OpenInference spans that hold one another (`child_spans`), as JSON or a Parquet table.

A span ends after its ISO duration. Its `logs` hold the gold answers of the benchmark and the table's `labels` its
annotations: both stay out of the trace. Parquet needs the optional pyarrow.
"""

import io
from collections.abc import Iterator
from typing import Any, Final

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.errors import InputError
from goldentrace.model.trace import Note, Trace
from goldentrace.sources import genai_steps, openinference_steps
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.shapes import as_name, as_objects
from goldentrace.sources.source import Source
from goldentrace.sources.spanmeaning import read_spans
from goldentrace.sources.spans import spans_of

NAME: Final = "trail"
_MAGIC: Final = b"PAR1"
_COLUMN: Final = "trace"
_ROWS_AT_ONCE: Final = 16


def matches(head: Head) -> bool:
    """Whether spans hold one another, or it is a table (no other format here is read from Parquet)."""
    return head.data.startswith(_MAGIC) or any(_is_trace(each) for each in head.objects)


def read(document: Document) -> Iterator[Trace]:
    """Yield the traces of a file. Raises: InputError where it is damaged, or pyarrow is missing."""
    skipped: list[Note] = []
    for line, value in _rows(document, skipped):
        spans = list(spans_of(_trace_of(value), line))
        for trace in read_spans(document, NAME, spans, genai_steps.step_of, openinference_steps.ABSENT_REASONS):
            yield _with_notes(trace, skipped)
            skipped.clear()


def _with_notes(trace: Trace, notes: list[Note]) -> Trace:
    return Trace(
        trace.events, trace.path, trace.lines, trace.incomplete, (*trace.notes, *notes), trace.format, trace.coverage
    )


def _is_trace(record: dict[str, Any]) -> bool:
    spans = as_objects(record.get("spans"))
    return bool(spans) and all("child_spans" in each or "span_attributes" in each for each in spans)


def _trace_of(value: Any) -> Any:
    """The trace of a row, or of a record that holds one as text."""
    inner = value.get(_COLUMN) if isinstance(value, dict) else None
    if isinstance(inner, str):
        try:
            return decode(inner)
        except JsonError:
            return None
    return inner if isinstance(inner, dict) else value


def _rows(document: Document, skipped: list[Note]) -> Iterator[tuple[int | None, Any]]:
    if not document.head.data.startswith(_MAGIC):
        has_lines = document.is_line_file()
        for line, value in document.records():
            yield (line if has_lines else None), value
        return
    for number, text in enumerate(_column(document), start=1):
        try:
            yield None, decode(text or "")
        except JsonError as error:
            skipped.append(Note(f"row {number} holds no trace ({error}) and was left out"))


def _column(document: Document) -> Iterator[str | None]:
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            "is a Parquet table", where=document.where(), next_step="pip install goldentrace[parquet], or give JSON"
        ) from None
    try:
        table = parquet.ParquetFile(io.BytesIO(document.read()))
        if _COLUMN not in table.schema_arrow.names:
            raise InputError(
                f"the table has no column {_COLUMN!r}", where=document.where(), next_step="give a table of TRAIL"
            )
        for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE, columns=[_COLUMN]):
            yield from (as_name(each) for each in batch.column(0).to_pylist())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"the table is damaged: {str(error).splitlines()[0] if str(error) else 'no reason given'}",
            where=document.where(), next_step="copy or export it again",
        ) from None  # fmt: skip


SOURCE: Final = Source(
    NAME, "TRAIL: nested OpenInference spans, JSON or Parquet", matches, read,
    notes="gold answers and annotations stay out of the trace; Parquet needs goldentrace[parquet]",
)  # fmt: skip
