"""YAML as JSON values with the line of every key and item, so that an error can point at what a person wrote.

Read with the safe loader's own rules; what JSON has no form for is an error, as are repeated keys. Size, depth, and
what aliases expand to are bounded before a value is built. This module must not know what a plan is.
"""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import yaml

from goldentrace.errors import ConfigError, Where
from goldentrace.model.pointer import escape

MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 64
MAX_NODES: Final = 50_000
"""Nodes after all aliases are expanded; nine levels of nine aliases each would be 400 million."""

Path: TypeAlias = tuple[str | int, ...]
_MERGE: Final = "tag:yaml.org,2002:merge"
_TIME: Final = "tag:yaml.org,2002:timestamp"
_PLAIN: Final = tuple(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq"))
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Marked:
    """value: JSON values only; lines: path -> 1-based line of the key or item there; path: the file, as people know
    it."""

    value: Any
    lines: dict[Path, int]
    path: str

    def where(self, at: Path) -> Where:
        """Return the place of a path, or of the nearest container above it that has a line."""
        near = at
        while near and near not in self.lines:
            near = near[:-1]
        return Where(self.path, self.lines.get(near, 1), show_path(at))


def show_path(at: Path) -> str:
    """Return a path as people read it, `$.tools.charge_card.steps[0]`."""
    parts = [f"[{key}]" if isinstance(key, int) else f".{escape(key)}" for key in at]
    return "$" + "".join(parts)


def read_marked(data: bytes, path: str) -> Marked:
    """Return the YAML document of a file with its lines.

    Raises: ConfigError naming file and line for bytes that are no YAML, more than one document, a value without a form
    in JSON, a repeated key, and anything beyond MAX_BYTES, MAX_DEPTH or MAX_NODES.
    """
    if len(data) > MAX_BYTES:
        raise ConfigError(f"more than {MAX_BYTES} bytes", where=Where(path), next_step="split the plan")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            "not UTF-8", where=Where(path, byte=error.start), next_step="save the file as UTF-8"
        ) from None
    try:
        _check_depth(text, path)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise _not_yaml(error, path) from None
    if root is None:
        raise ConfigError(
            "the file is empty", where=Where(path), next_step="`goldentrace schema faults` prints the format"
        )
    builder = _Builder(path)
    builder.measure(root)
    return Marked(builder.build(root, ()), builder.lines, path)


def _check_depth(text: str, path: str) -> None:
    """Bound the nesting before anything recurses over it; the event stream does not."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark is not None else None
                raise ConfigError(
                    f"nested more than {MAX_DEPTH} deep", where=Where(path, line), next_step="flatten the value"
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _not_yaml(error: yaml.YAMLError, path: str) -> ConfigError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    return ConfigError(
        f"not YAML: {problem}", where=Where(path, None if mark is None else mark.line + 1), next_step="repair the line"
    )


class _Builder:
    """Nodes to values; the state is the lines found so far."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: dict[Path, int] = {}
        self.scalars = yaml.constructor.SafeConstructor()

    def error(self, what: str, node: yaml.Node, at: Path, next_step: str) -> ConfigError:
        return ConfigError(what, where=Where(self.path, node.start_mark.line + 1, show_path(at)), next_step=next_step)

    def measure(self, root: yaml.Node) -> None:
        """Refuse a document that its aliases make too large, or that contains itself. Linear in what is written."""
        sizes: dict[int, int] = {}
        open_nodes: set[int] = set()

        def size(node: yaml.Node) -> int:
            known = sizes.get(id(node))
            if known is not None:
                return known
            if id(node) in open_nodes:
                raise self.error("an alias that contains itself", node, (), "write the value out")
            open_nodes.add(id(node))
            total = 1
            if isinstance(node, yaml.MappingNode):
                total += sum(size(key) + size(value) for key, value in node.value)
            elif isinstance(node, yaml.SequenceNode):
                total += sum(size(item) for item in node.value)
            open_nodes.discard(id(node))
            sizes[id(node)] = total
            if total > MAX_NODES:
                raise self.error(f"aliases expand to more than {MAX_NODES} values", node, (), "use fewer aliases")
            return total

        size(root)

    def build(self, node: yaml.Node, at: Path) -> Any:
        self.lines.setdefault(at, node.start_mark.line + 1)
        if node.tag == _TIME:
            return node.value
        if node.tag not in _PLAIN:
            raise self.error(f"the tag {node.tag!r} has no form in JSON", node, at, "use a string in quotes")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*at, number)) for number, item in enumerate(node.value)]
        if node.tag in _PLAIN[1:3] and ":" in node.value:
            return node.value  # 12:30 is a time to whoever writes it; YAML 1.1 reads 750
        try:
            value = self.scalars.construct_object(node)
        except (ValueError, yaml.YAMLError):
            raise self.error(f"{node.value!r} is no value", node, at, "put it in quotes") from None
        if isinstance(value, float) and value - value != 0:
            raise self.error(f"{node.value} is not JSON", node, at, "write a finite number")
        return value

    def mapping(self, node: yaml.MappingNode, at: Path) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                self.merge(value_node, at, merged)
                continue
            key = self.key(key_node, at)
            if key in own:
                raise self.error(f"the key {key!r} stands twice", key_node, at, "keep one of them")
            self.lines[(*at, key)] = key_node.start_mark.line + 1
            own[key] = self.build(value_node, (*at, key))
        return {**merged, **own}

    def merge(self, node: yaml.Node, at: Path, into: dict[str, Any]) -> None:
        """`<<`: the first of several mappings wins (YAML merge key)."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise self.error("`<<` takes a mapping", node, at, "alias a mapping")
            for key, value in self.mapping(source, at).items():
                into.setdefault(key, value)

    def key(self, node: yaml.Node, at: Path) -> str:
        """A key as JSON has it. Numbers (status codes) become text; `on` and `no` would silently become booleans."""
        if isinstance(node, yaml.ScalarNode):
            if node.tag in (_PLAIN[0], _TIME):
                return str(node.value)
            if node.tag == _PLAIN[1]:
                return str(self.scalars.construct_object(node))
        raise self.error("a key that is no text", node, at, "put the key in quotes")
