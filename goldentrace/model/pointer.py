"""JSON Pointers (RFC 6901) and globs over them.

A glob that begins with `/` is matched segment by segment, `*` for one segment and `**` for any number; any other glob
is a key name, matched at every depth. What follows `#` or a final `~n` is goldentrace's own suffix and no part of the
path.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

_BAD_ESCAPE = re.compile(r"~(?![01])")
_JSON_PATH = re.compile(r"[^.\[\]/]+")
_SUFFIX = re.compile(r"#.*\Z", re.DOTALL)


def escape(key: str) -> str:
    """Return a key as one segment: `~` as `~0`, `/` as `~1`."""
    if "~" in key or "/" in key:
        return key.replace("~", "~0").replace("/", "~1")
    return key


def unescape(segment: str) -> str:
    """Return the key that a segment stands for."""
    return segment.replace("~1", "/").replace("~0", "~") if "~" in segment else segment


def parent(pointer: str) -> str:
    """Return the pointer of the container that holds this one; the root's is the root."""
    return pointer.rpartition("/")[0]


def glob_problem(glob: str) -> tuple[str, str] | None:
    """Return (what, next step) where a text is no glob, or one that names nothing; None where it is one."""
    if not glob:
        return "an empty glob names nothing", "write a key name, or a pointer like /items/*/id"
    if glob.startswith("$") or "[" in glob or "]" in glob:
        return f"{glob!r} is no glob: there are keys, `*` and `**`", f"write {_as_pointer(glob)}"
    if glob.startswith("/") and _BAD_ESCAPE.search(glob) is not None:
        return f"{glob!r} has a ~ that escapes nothing", f"write {_BAD_ESCAPE.sub('~0', glob)}"
    return None


def _as_pointer(path: str) -> str:
    """What was probably meant by `$.items[0].id`, or by a bracket that stands for something."""
    keys = [key.strip("'\"") for key in _JSON_PATH.findall(path.removeprefix("$"))]
    return "".join(f"/{key}" for key in keys) or "/** for everything, or * for what stands in the brackets"


@lru_cache(maxsize=1024)
def compile_globs(globs: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return one pattern that matches the pointers which any of the globs names, None where there is no glob."""
    if not globs:
        return None
    return re.compile("|".join(f"(?:{_regex(glob)})" for glob in globs), re.DOTALL)


def _regex(glob: str) -> str:
    """Each part behind a star is taken where it comes first, for good: a later place could only match less."""
    if not glob.startswith("/"):
        return rf"(?:.*/)?{_segment(escape(glob))}(?:/.*)?"
    first, *later = _runs(glob[1:].split("/"))
    return first + "".join(rf"(?>(?:/[^/]*)*?{run}(?=/|\Z))" for run in later if run) + "(?:/.*)?"


def _runs(segments: list[str]) -> list[str]:
    """The segments between any `**`, joined; the first run is empty where the glob begins with `**`."""
    runs = [""]
    for segment in segments:
        if segment == "**":
            runs.append("")
        else:
            runs[-1] += "/" + _segment(segment)
    return runs


def _segment(glob: str) -> str:
    """A glob over one segment; what must match the end is tried at the end."""
    first, *later = map(re.escape, glob.split("*"))
    if not later:
        return first
    inner = "".join(f"(?>[^/]*?{part})" for part in later[:-1] if part)
    return rf"{first}{inner}[^/]*{later[-1]}(?=/|\Z)" if later[-1] else rf"{first}{inner}[^/]*"


def is_matched(pattern: re.Pattern[str] | None, pointer: str) -> bool:
    """Does any of the compiled globs name this pointer, or a container above it?"""
    return pattern is not None and pattern.fullmatch(_SUFFIX.sub("", pointer)) is not None


def segments(pointer: str) -> Sequence[str]:
    """Return the unescaped keys from the root."""
    return [unescape(segment) for segment in pointer.split("/")[1:]]
