"""One input as a source sees it: its head, its lines, its JSON values, each read from the start whenever asked for.

A source gets the Document passed in and opens nothing itself. Three framings are read alike: one JSON document, JSON
lines, JSON values one after another. Must not know any format.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, Protocol

from goldentrace.codec.canonical import JsonError, decode
from goldentrace.errors import InputError, NoTraceError, Where
from goldentrace.model.trace import Note
from goldentrace.sources import bytestream
from goldentrace.sources.bytestream import Opener, Progress, guard
from goldentrace.sources.head import HEAD_BYTES, Head

MAX_BYTES: Final = bytestream.MAX_FILE_BYTES
MAX_LINE_BYTES: Final = 64 << 20
"""A line is decoded as a whole: this bounds the memory of one. Lines of some MB (images) occur in real sessions."""
MEMBER_MARK: Final = "!"
"""Between the name of an archive and that of a member of it."""
REPAIR: Final = "repair or export the file again"


class Beside(Protocol):
    """The files that stand beside an input; paths are relative to its folder. name: of the input itself."""

    name: str

    def paths(self, folder: str, pattern: str) -> list[str]:
        """Return the paths of the files below a folder whose names match, sorted."""

    def open(self, path: str) -> "Document | None":
        """Return that file, None where there is none. Raises: InputError where it cannot be read."""


class Document:
    """One input. name: as people know it; path: the file, None for what is none by itself (standard input, bytes in
    memory, a member of an archive); beside: the files that stand beside it.

    torn: set while reading, where the last line of a line file is cut off and was dropped; left_out: filled while the
    traces of an archive are read, the names of its members that hold none.
    """

    def __init__(
        self, name: str, opener: Opener, *, path: Path | None = None, max_bytes: int = MAX_BYTES,
        on_progress: Progress | None = None, beside: Beside | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.path = path
        self.max_bytes = max_bytes
        self.beside = beside
        self.torn: Note | None = None
        self.left_out: list[str] = []
        self.opener = opener
        self.on_progress = on_progress
        self._head: Head | None = None

    @classmethod
    def of(cls, data: bytes, name: str = "<memory>", *, max_bytes: int = MAX_BYTES) -> "Document":
        """Return a document over bytes in memory."""
        return cls(name, lambda: io.BytesIO(data), max_bytes=max_bytes)

    @property
    def head(self) -> Head:
        """The first 64 KiB."""
        if self._head is None:
            self._head = self.read_head(HEAD_BYTES)
        return self._head

    def read_head(self, size_bytes: int) -> Head:
        """Return the first `size_bytes`. Raises: InputError where the file is empty or unreadable."""
        with self.open() as stream:
            data = guard(self.name, stream.read, size_bytes + 1)
        if not data.strip():
            raise NoTraceError("the file is empty", where=Where(self.name), next_step="give a file that holds a trace")
        return Head(data[:size_bytes], is_whole=len(data) <= size_bytes)

    def open(self) -> IO[bytes]:
        """Return the bytes from the start: decompressed, bounded by max_bytes, without a BOM."""
        return bytestream.open_bounded(self.name, self.opener, self.max_bytes, self.on_progress)

    def read(self) -> bytes:
        """Return all bytes."""
        with self.open() as stream:
            return guard(self.name, stream.read)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (1-based line number, bytes with its line end) of every line that is not blank.

        Raises: InputError for a line of more than MAX_LINE_BYTES.
        """
        with self.open() as stream:
            number = 0
            while row := guard(self.name, stream.readline, MAX_LINE_BYTES + 1):
                number += 1
                if len(row) > MAX_LINE_BYTES:
                    raise InputError(
                        f"a line of more than {MAX_LINE_BYTES:,} bytes", where=Where(self.name, number),
                        next_step="split it, or take what it embeds (images, archives) out of it",
                    )  # fmt: skip
                if not row.isspace():
                    yield number, row

    def records(self) -> Iterator[tuple[int, Any]]:
        """Yield (1-based line where it begins, value) of every JSON value, whatever the framing.

        In a line file a last line that is cut off is dropped and said in `torn`.
        Raises: InputError with the line for anything that is not JSON.
        """
        if self.is_line_file():
            yield from self._records_of_lines()
            return
        data = self.read()
        try:
            yield 1, decode(data)
        except JsonError as error:
            values = _concatenated(data)
            if values is None:
                raise self._not_json(data, error) from None
            for line, piece in values:
                yield line, self.decode(piece, line)

    def json(self) -> Any:
        """Return the one JSON document. Raises: InputError with the line of the damage."""
        data = self.read()
        try:
            return decode(data)
        except JsonError as error:
            raise self._not_json(data, error) from None

    def decode(self, data: bytes | str, line: int | None = None) -> Any:
        """Return the JSON value of a part of this document. Raises: InputError with the line."""
        try:
            return decode(data)
        except JsonError as error:
            raise InputError(str(error), where=Where(self.name, line), next_step=REPAIR) from None

    def where(self, line: int | None = None, pointer: str | None = None) -> Where:
        """Return a place in this document, for an error."""
        return Where(self.name, line, pointer)

    def is_line_file(self) -> bool:
        """Whether the first line is a JSON array or object by itself and another line follows."""
        has_first = False
        with self.open() as stream:
            while row := guard(self.name, stream.readline, MAX_LINE_BYTES + 1):
                if row.isspace():
                    continue
                if has_first:
                    return True
                if len(row) > MAX_LINE_BYTES or row.strip()[-1:] not in (b"}", b"]"):
                    return False
                try:
                    decode(row)
                except JsonError:
                    return False
                has_first = True
        return False

    def _records_of_lines(self) -> Iterator[tuple[int, Any]]:
        for number, row in self.lines():
            try:
                value = decode(row)
            except JsonError as error:
                if not row.endswith(b"\n"):
                    self.torn = Note(f"the last line is torn ({len(row)} bytes dropped)", number)
                    return
                raise InputError(str(error), where=Where(self.name, number), next_step=REPAIR) from None
            yield number, value

    def _not_json(self, data: bytes, error: JsonError) -> InputError:
        return InputError(str(error), where=Where(self.name, _line_of_damage(data)), next_step=REPAIR)


def open_document(path: str | Path, *, max_bytes: int = MAX_BYTES, on_progress: Progress | None = None) -> Document:
    """Return a document over a file, or over standard input where the path is `-`.

    max_bytes: limit on the (decompressed) size; on_progress: called with the bytes read so far, now and then.
    Raises: InputError where the file is missing, a directory, unreadable, empty or too large.
    """
    if str(path) == bytestream.STDIN:
        document = Document(bytestream.STDIN_NAME, bytestream.stdin_opener(max_bytes), max_bytes=max_bytes)
    else:
        file = Path(path)
        document = Document(
            str(path), bytestream.file_opener(file, max_bytes), path=file, max_bytes=max_bytes,
            beside=_InFolder(file, max_bytes),
        )  # fmt: skip
    document.on_progress = on_progress
    _ = document.head
    return document


class _InFolder:
    """The files beside a file of the file system."""

    def __init__(self, file: Path, max_bytes: int) -> None:
        self.name = file.name
        self._folder = file.parent
        self._max_bytes = max_bytes

    def paths(self, folder: str, pattern: str) -> list[str]:
        found = sorted((self._folder / folder).glob(f"**/{pattern}"))
        return [file.relative_to(self._folder).as_posix() for file in found if file.is_file()]

    def open(self, path: str) -> Document | None:
        file = self._folder / path
        return open_document(file, max_bytes=self._max_bytes) if file.is_file() else None


def _concatenated(data: bytes) -> list[tuple[int, bytes]] | None:
    """(line, bytes) of JSON values that follow one another, None where this is no such file."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    import json

    scan = json.JSONDecoder().raw_decode
    pieces: list[tuple[int, bytes]] = []
    position = counted_to = lines_before = 0
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if position == len(text):
            return pieces
        try:
            _, end = scan(text, position)
        except (ValueError, RecursionError):
            return None
        lines_before += text.count("\n", counted_to, position)
        counted_to = position
        pieces.append((lines_before + 1, text[position:end].encode("utf-8", "surrogatepass")))
        position = end


def _line_of_damage(data: bytes) -> int | None:
    import json

    try:
        json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1
    except json.JSONDecodeError as error:
        return error.lineno
    except (ValueError, RecursionError):
        pass  # an integer or a nesting beyond the limits: no place is known
    return None
