"""What may be wrong with an archive, and what its members are called, in one way for every kind. Must not read one."""

import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from goldentrace.errors import InputError, Where
from goldentrace.sources.document import MEMBER_MARK, Document

MAX_MEMBERS: Final = 50_000
"""What is known of each takes about a kilobyte."""
AGAIN: Final = "copy or make the archive again"
_DAMAGE: Final = (
    zipfile.BadZipFile, zlib.error, tarfile.TarError, EOFError, ValueError, LookupError, ArithmeticError,
    NotImplementedError, RecursionError,
)  # fmt: skip
"""What the libraries raise where bytes are not what they should be."""


@contextmanager
def told(name: str) -> Iterator[None]:
    """Raise what the libraries raise for damage as InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}", where=Where(name), next_step="check the file"
        ) from None
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"the archive is damaged: {reason:.200}", where=Where(name), next_step=AGAIN) from None


def check_count(name: str, count: int) -> None:
    """Refuse an archive of more than MAX_MEMBERS members. Raises: InputError."""
    if count > MAX_MEMBERS:
        raise InputError(
            f"more than {MAX_MEMBERS:,} members", where=Where(name), next_step="unpack it, and give its files in parts"
        )


def check_new(name: str, known: Collection[str], where: Where) -> None:
    """Refuse a second member of one name: readers differ in which of them counts. Raises: InputError."""
    if name in known:
        raise InputError("two members have this name", where=where, next_step="unpack the archive, and give the file")


def member_name(document: Document, name: str) -> str:
    """Return what people know a member by: the archive, and where it is in it."""
    return document.name + MEMBER_MARK + shown(name)


def shown(name: str) -> str:
    """Return a name as it can be printed."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in name)
