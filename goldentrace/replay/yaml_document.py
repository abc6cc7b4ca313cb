"""YAML with places: plain JSON values, and the line of every value, so that an error can name line and key.

The safe loader's grammar, less what would surprise in arguments that become JSON: dates stay text, duplicate keys and
keys that are no strings are errors, and aliases count each time they are used, so that a bomb is refused. This module
must not know what a script is."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from goldentrace.codec.canonical import JsonError, canonical
from goldentrace.errors import ConfigError, Where
from goldentrace.model.pointer import escape

MAX_BYTES: Final = 4 << 20
MAX_VALUES: Final = 100_000
MAX_DEPTH: Final = 100
_PREFIX: Final = "tag:yaml.org,2002:"
_TAGS: Final = {_PREFIX + name for name in ("str", "null", "bool", "int", "float", "seq", "map")}
_TEXT_TAGS: Final = {_PREFIX + name for name in ("timestamp", "value")}
"""JSON has no dates, and `=` is a text."""


@dataclass(slots=True)
class Document:
    """The value of a file, and by JSON Pointer the 1-based line where each value begins."""

    value: Any
    path: str
    lines: dict[str, int] = field(default_factory=dict)

    def where(self, pointer: str) -> Where:
        """The place of a value, or of the nearest value above it that has a line."""
        found = pointer
        while found not in self.lines and found:
            found = found.rpartition("/")[0]
        return Where(self.path, self.lines.get(found), pointer or None)

    def error(self, pointer: str, what: str, next_step: str = "") -> ConfigError:
        """Return the error for a value, to be raised."""
        return ConfigError(what, where=self.where(pointer), next_step=next_step)


def suggest(word: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown word: the nearest known one, else all of them."""
    words = list(known)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(words)}"


def read_document(data: bytes, path: str) -> Document:
    """Return the values and lines of one YAML document.

    Raises: ConfigError naming the line for anything that is not YAML, is not JSON's kind of value, or is beyond the
    limits."""
    if len(data) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES:,} bytes", where=Where(path), next_step="split it")
    document = Document(None, path)
    try:
        text = data.decode("utf-8-sig")
        loader = _LOADER(text)
        try:
            node = loader.get_single_node()
            document.value = _Builder(document, loader).build(node, "", 1) if node is not None else None
        finally:
            loader.dispose()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("not UTF-8", where=Where(path, line), next_step="save it as UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
        where = Where(path, None if mark is None else mark.line + 1)
        raise ConfigError(f"not YAML: {problem}", where=where, next_step="correct the line") from None
    except RecursionError:
        raise ConfigError("nested too deeply", where=Where(path), next_step="flatten the value") from None
    return document


_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Builder:
    """Turns nodes into values; an alias is built again where it is used, and counts again."""

    def __init__(self, document: Document, loader: Any) -> None:
        self._document = document
        self._loader = loader
        self._count = 0

    def build(self, node: Any, pointer: str, depth: int) -> Any:
        self._document.lines[pointer] = node.start_mark.line + 1
        self._count += 1
        if self._count > MAX_VALUES:
            raise self._document.error(pointer, f"more than {MAX_VALUES:,} values (aliases counted)", "make it smaller")
        if depth > MAX_DEPTH:
            raise self._document.error(pointer, f"nested deeper than {MAX_DEPTH}", "flatten the value")
        if node.tag in _TEXT_TAGS and isinstance(node, yaml.ScalarNode):
            return node.value
        if node.tag not in _TAGS:
            tag = node.tag.removeprefix(_PREFIX)
            raise self._document.error(pointer, f"tag {tag!r} is not taken", "use plain YAML")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, pointer)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, f"{pointer}/{index}", depth + 1) for index, item in enumerate(node.value)]
        return self._mapping(node, pointer, depth)

    def _mapping(self, node: Any, pointer: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            place = f"{pointer}/{escape(str(key))}"
            self._document.lines[place] = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == _PREFIX + "merge":
                raise self._document.error(place, "a key that is no plain text", "write the keys out")
            if key in found:
                raise self._document.error(place, f"key {key!r} stands twice", "remove one of them")
            found[key] = self.build(value_node, place, depth + 1)
        return found

    def _scalar(self, node: Any, pointer: str) -> Any:
        try:
            value = self._loader.construct_object(node)
            canonical(value)
        except (JsonError, ValueError, yaml.YAMLError):
            raise self._document.error(pointer, "a number that JSON has no form for", "quote it") from None
        return value
