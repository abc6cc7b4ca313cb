"""Inspect logs (`.eval`, `.json`), read by inspect_ai itself: one trace per sample and epoch.

Needs the extra `inspect`. An `.eval` file shares messages between its parts in ways that change with versions, so it is
never read here by hand. Calls are what the model asked for; when each began and ended, its tool event tells.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from goldentrace.errors import InputError, Where
from goldentrace.model.trace import Trace
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.inspect_sample import SampleReader
from goldentrace.sources.shapes import as_object
from goldentrace.sources.source import Source
from goldentrace.sources.zipsize import is_larger

NAME: Final = "inspect"
_ZIP: Final = b"PK\x03\x04"
_PART: Final = re.compile(
    rb"_journal/.*|(?:header|summaries|reductions)\.json|samples/.*_epoch_[0-9]+\.json", re.DOTALL
)
"""What the first part of a log is called; an archive of traces may have a folder `samples` too."""
INSTALL: Final = "pip install goldentrace[inspect]"


def matches(head: Head) -> bool:
    """Whether it is a zip that begins with a part of a log, or the one JSON document of one."""
    if head.data[:4] == _ZIP:
        name_bytes = int.from_bytes(head.data[26:28], "little")  # PKWARE's APPNOTE 4.3.7
        return _PART.fullmatch(head.data, 30, 30 + name_bytes) is not None
    evaluation = as_object(as_object(head.value).get("eval"))
    return head.has_key("version", "eval") and "task" in evaluation and "model" in evaluation


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per sample and epoch. Raises: InputError where inspect_ai is missing or cannot read the log."""
    try:
        import inspect_ai.log as library
    except ImportError:
        raise InputError(
            "Inspect logs are read by inspect_ai, which is not installed", where=document.where(), next_step=INSTALL
        ) from None
    is_zip = document.head.data[:4] == _ZIP
    with _file_of(document, is_zip=is_zip) as path:
        if is_zip:
            _check_size(document, path)
        with _told(document, path):
            # Of a JSON file the header alone could be read only where its keys stand in one order.
            log = library.read_eval_log(str(path), header_only=is_zip, resolve_attachments=True)
            samples = _samples(library, path) if is_zip else iter(log.samples or [])
        while True:
            with _told(document, path):
                sample = next(samples, None)
                if sample is None:
                    return
            yield SampleReader(document, log.eval, sample).read()


def _samples(library: Any, path: Path) -> Iterator[Any]:
    """Samples of a zip in their order, one after another."""
    for summary in library.read_eval_log_sample_summaries(str(path)):
        yield library.read_eval_log_sample(str(path), id=summary.id, epoch=summary.epoch, resolve_attachments=True)


@contextmanager
def _told(document: Document, path: Path) -> Iterator[None]:
    """Raise what inspect_ai raises as InputError; a copy under another name is not named."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged log raises whatever its decoders (zip, zstd, JSON, pydantic) do
        first = str(error).replace(str(path), document.name).strip().partition("\n")[0][:200]
        raise InputError(
            f"inspect_ai cannot read it: {type(error).__name__}: {first}", where=document.where(),
            next_step="write the log again, or read it with the inspect_ai that wrote it",
        ) from None  # fmt: skip


@contextmanager
def _file_of(document: Document, *, is_zip: bool) -> Iterator[Path]:
    """The file, under a name whose suffix tells inspect_ai what it is."""
    suffix = ".eval" if is_zip else ".json"
    if document.path is not None and document.path.suffix == suffix:
        yield document.path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / f"log{suffix}"
        copy.write_bytes(document.read())
        yield copy


def _check_size(document: Document, path: Path) -> None:
    """Refuse a zip that unpacks to more than the limit, before inspect_ai unpacks it without one."""
    with _told(document, path):
        if not is_larger(path, document.max_bytes):
            return
    raise InputError(
        f"unpacks to more than the limit of {document.max_bytes:,} bytes", where=Where(document.name),
        next_step="raise the limit with --max-bytes",
    )  # fmt: skip


SOURCE: Final = Source(
    NAME, "Inspect logs, .eval and .json (extra `inspect`)", matches, read,
    notes="needs pip install goldentrace[inspect]; one trace per sample and epoch",
)  # fmt: skip
