"""YAML as JSON values with the line of every value, so that an error can point at what a person wrote.

Read with the safe loader's own rules. What JSON has no form for is an error or stays text, repeated keys are an error,
and size, depth and what aliases expand to are bounded before a value is built. yaml itself is imported on the first
use: it costs as much as a whole diff. This module must not know what a document is for.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec

from goldentrace.errors import ConfigError, Where
from goldentrace.model.pointer import escape

MAX_BYTES: Final = 4 << 20
MAX_DEPTH: Final = 100
MAX_VALUES: Final = 100_000
"""Values after all aliases are expanded; nine levels of nine aliases each would be 400 million."""

_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset({_TAG + "timestamp", _TAG + "value"})
"""JSON has no dates, and `=` is no special value: both stay the text that they were written as."""
_SCALAR_TAGS: Final = frozenset(_TAG + name for name in ("str", "int", "float", "bool", "null"))
_NUMBER_TAGS: Final = frozenset({_TAG + "int", _TAG + "float"})


class YamlDocument(msgspec.Struct):
    """The value of a file, and by JSON Pointer the 1-based line of the key or item there. path: as people know the
    file."""

    value: Any
    path: str
    lines: dict[str, int] = msgspec.field(default_factory=dict)

    def where(self, pointer: str = "") -> Where:
        """Return the place of a value, or the line of the nearest value above it that has one."""
        near = pointer
        while near and near not in self.lines:
            near = near.rpartition("/")[0]
        return Where(self.path, self.lines.get(near), show_pointer(pointer))

    def error(self, pointer: str, what: str, next_step: str = "") -> ConfigError:
        """Return the error for a value, to be raised."""
        return ConfigError(what, where=self.where(pointer), next_step=next_step)

    def convert(self, kind: Any, *, value: Any = None, pointer: str = "") -> Any:
        """Return the value as a type of msgspec Structs, dicts, lists and plain types.

        value, pointer: a part of the document, default the whole. Raises: ConfigError naming file, line and pointer for
        an unknown key (with the nearest known one), a missing key and a wrong type.
        """
        value = self.value if value is None and not pointer else value
        _check(self, value, kind, pointer)
        return _converted(self, value, kind, pointer)


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping overlaid with another: mappings within key by key, anything else replaced."""
    result = dict(base)
    for key, value in over.items():
        before = result.get(key)
        result[key] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def show_pointer(pointer: str) -> str:
    """Return a JSON Pointer as people read it: `$.tools.charge_card.steps[0]`, `$` for the root."""
    parts = ["$"]
    for segment in pointer.split("/")[1:]:
        key = segment.replace("~1", "/").replace("~0", "~")
        if segment.isdigit():
            parts.append(f"[{segment}]")
        elif key and all(char.isalnum() or char in "_-" for char in key):
            parts.append(f".{key}")
        else:
            parts.append(f"[{key!r}]")
    return "".join(parts)


def suggest(word: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown word: the nearest known one, else all of them."""
    import difflib  # only an error needs it: 5 ms

    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(words)}"


# -- reading ---------------------------------------------------------------------------------------------------------


def read_yaml(
    data: bytes, path: str, *, max_bytes: int = MAX_BYTES, max_values: int = MAX_VALUES, max_depth: int = MAX_DEPTH
) -> YamlDocument:
    """Return the one document of a YAML file; an empty file has the value None.

    Kept as text: dates, and what YAML 1.1 reads as base 60 (`12:30`). Keys are text; plain integers as keys become
    text. Raises: ConfigError naming file and line for bytes that are no YAML, more than one document, an unknown tag, a
    repeated key, NaN, and anything beyond the limits.
    """
    import yaml

    if len(data) > max_bytes:
        raise ConfigError(f"larger than {max_bytes:,} bytes", where=Where(path), next_step="split the file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("not UTF-8", where=Where(path, line), next_step="save the file as UTF-8") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_depth(yaml.parse(text, Loader=loader), path, max_depth)
        root = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        raise _not_yaml(error, path) from None
    document = YamlDocument(None, path)
    if root is not None:
        builder = _Builder(document, max_values)
        builder.measure(root)
        document.value = builder.build(root, "")
    return document


def _check_depth(events: Iterable[Any], path: str, max_depth: int) -> None:
    """Bound the nesting before anything recurses over it; the stream of events does not."""
    depth = 0
    for event in events:
        name = type(event).__name__
        if name in ("MappingStartEvent", "SequenceStartEvent"):
            depth += 1
            if depth > max_depth:
                where = Where(path, event.start_mark.line + 1)
                raise ConfigError(f"nested deeper than {max_depth}", where=where, next_step="flatten the value")
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            depth -= 1


def _not_yaml(error: Any, path: str) -> ConfigError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    where = Where(path, None if mark is None else mark.line + 1)
    return ConfigError(f"not YAML: {problem}", where=where, next_step="correct the line")


class _Builder:
    """Nodes to values, filling the lines of the document."""

    def __init__(self, document: YamlDocument, max_values: int) -> None:
        import yaml

        self._document = document
        self._max_values = max_values
        self._scalars = yaml.constructor.SafeConstructor()

    def _error(self, what: str, node: Any, pointer: str, next_step: str) -> ConfigError:
        where = Where(self._document.path, node.start_mark.line + 1, show_pointer(pointer))
        return ConfigError(what, where=where, next_step=next_step)

    def measure(self, root: Any) -> None:
        """Refuse what aliases make too large, or that contains itself. Linear in what is written."""
        sizes: dict[int, int] = {}
        open_nodes: set[int] = set()

        def size(node: Any) -> int:
            known = sizes.get(id(node))
            if known is not None:
                return known
            if id(node) in open_nodes:
                raise self._error("an alias that contains itself", node, "", "write the value out")
            open_nodes.add(id(node))
            total = 1
            if node.id == "mapping":
                total += sum(size(key) + size(value) for key, value in node.value)
            elif node.id == "sequence":
                total += sum(size(item) for item in node.value)
            open_nodes.discard(id(node))
            sizes[id(node)] = total
            if total > self._max_values:
                raise self._error(
                    f"more than {self._max_values:,} values, aliases counted", node, "", "use fewer aliases"
                )
            return total

        size(root)

    def build(self, node: Any, pointer: str) -> Any:
        self._document.lines.setdefault(pointer, node.start_mark.line + 1)
        if node.tag in _TEXT_TAGS:
            return node.value
        if node.id == "mapping" and node.tag == _TAG + "map":
            return self._mapping(node, pointer)
        if node.id == "sequence" and node.tag == _TAG + "seq":
            return [self.build(item, f"{pointer}/{number}") for number, item in enumerate(node.value)]
        if node.tag not in _SCALAR_TAGS or node.id != "scalar":
            tag = node.tag.removeprefix(_TAG)
            raise self._error(f"the tag {tag!r} is not taken", node, pointer, "use plain YAML")
        return self._scalar(node, pointer)

    def _scalar(self, node: Any, pointer: str) -> Any:
        if node.tag in _NUMBER_TAGS and ":" in node.value:
            return node.value  # 12:30 is a time to whoever writes it; YAML 1.1 reads 750
        try:
            value = self._scalars.construct_object(node)
        except ValueError:
            raise self._error("a value that cannot be read", node, pointer, "put it in quotes") from None
        if isinstance(value, float) and value - value != 0:
            raise self._error(f"{node.value} is no number", node, pointer, "write a finite number")
        return value

    def _mapping(self, node: Any, pointer: str) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                self._merge(value_node, pointer, merged)
                continue
            key = self._key(key_node, pointer)
            place = f"{pointer}/{escape(key)}"
            if key in own:
                raise self._error(f"the key {key!r} stands twice", key_node, place, "keep one of them")
            self._document.lines[place] = key_node.start_mark.line + 1
            own[key] = self.build(value_node, place)
        return {**merged, **own}

    def _merge(self, node: Any, pointer: str, into: dict[str, Any]) -> None:
        """`<<` takes the keys of a mapping, or of several, the first one winning (YAML merge key)."""
        for source in node.value if node.id == "sequence" else [node]:
            if source.id != "mapping":
                raise self._error("`<<` takes a mapping", node, pointer, "name a mapping with an alias")
            for key, value in self._mapping(source, pointer).items():
                into.setdefault(key, value)

    def _key(self, node: Any, pointer: str) -> str:
        """A key as JSON has it: status codes become text, `on` and `no` stay what they were written as."""
        if node.id == "scalar" and node.tag in (_TAG + "str", _TAG + "timestamp", _TAG + "int", _TAG + "bool"):
            return str(node.value)
        raise self._error("a key that is no plain text", node, pointer, "put the key in quotes")


# -- typed values ----------------------------------------------------------------------------------------------------


def _check(document: YamlDocument, value: Any, kind: Any, pointer: str) -> None:
    """Refuse unknown and missing keys and wrong types, at their own place: msgspec's messages know no keys of
    mappings."""
    kind = _inner(kind, value)
    origin = get_origin(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        _check_struct(document, value, kind, pointer)
    elif origin is dict and isinstance(value, dict):
        for key, item in value.items():
            _check(document, item, get_args(kind)[1], f"{pointer}/{escape(str(key))}")
    elif origin is list and isinstance(value, list):
        for number, item in enumerate(value):
            _check(document, item, get_args(kind)[0], f"{pointer}/{number}")
    else:
        _converted(document, value, kind, pointer)


def _check_struct(document: YamlDocument, value: Any, kind: type[msgspec.Struct], pointer: str) -> None:
    if not isinstance(value, dict):
        raise document.error(pointer, f"must be a mapping, not {_named(value)}", "write `key: value` lines below it")
    fields = {entry.encode_name: entry for entry in msgspec.structs.fields(kind)}
    for key, item in value.items():
        place = f"{pointer}/{escape(str(key))}"
        if key not in fields:
            raise document.error(place, f"unknown key {key!r}", suggest(str(key), fields))
        _check(document, item, fields[key].type, place)
    for name, entry in fields.items():
        if entry.required and name not in value:
            raise document.error(pointer, f"the key {name!r} is missing", f"add `{name}: …`")


def _inner(kind: Any, value: Any) -> Any:
    """The member of a union that fits the shape of the value, so that errors point inside it."""
    if get_origin(kind) is not Union and type(kind).__name__ != "UnionType":
        return kind
    for member in get_args(kind):
        origin = get_origin(member)
        is_struct = isinstance(member, type) and issubclass(member, msgspec.Struct)
        if isinstance(value, dict) and (origin is dict or is_struct):
            return member
        if isinstance(value, list) and origin is list:
            return member
    return kind


def _converted(document: YamlDocument, value: Any, kind: Any, pointer: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        choices = [
            str(choice)
            for member in (kind, *get_args(kind))
            if get_origin(member) is Literal
            for choice in get_args(member)
        ]
        if choices and isinstance(value, str):
            raise document.error(pointer, f"{value!r} is no choice here", suggest(value, choices)) from None
        what = str(error).partition(" - at ")[0].replace("`", "")
        raise document.error(pointer, f"{what[:1].lower()}{what[1:]}", _bounds(kind)) from None


def _bounds(kind: Any) -> str:
    """What to write where a number may be from one bound to another."""
    for member in (kind, *get_args(kind)):
        for meta in getattr(member, "__metadata__", ()):
            low, high = getattr(meta, "ge", None), getattr(meta, "le", None)
            if low is not None:
                return f"write a number from {low} to {high:,}" if high is not None else f"write a number from {low} on"
    return "correct the value"


def _named(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")
