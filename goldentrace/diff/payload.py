"""What differs between two values that a profile keeps in clear. The only importer of deepdiff, and lazily: it costs
140 ms.

Used on paired payloads alone, never to align: deepdiff pairs lists of objects by index.
"""

from typing import Any, Final

MAX_BYTES: Final = 200_000
"""Payloads longer than this as text are not walked: 65 kB of rows took deepdiff 130 ms."""
MAX_DIFFERENCES: Final = 20


def describe_differences(expected: Any, actual: Any) -> list[str]:
    """Return one line per difference, `/path: before -> now`, at most MAX_DIFFERENCES; none where the values are
    too long."""
    if len(repr(expected)) + len(repr(actual)) > MAX_BYTES:
        return []
    from deepdiff import DeepDiff

    found = DeepDiff(expected, actual, verbose_level=2, view="tree")
    lines: list[str] = []
    for kind in sorted(found):
        for item in found[kind]:
            place = "".join(f"/{step}" for step in item.path(output_format="list"))
            lines.append(f"{place}: {item.t1!r} -> {item.t2!r}")
    return sorted(lines)[:MAX_DIFFERENCES]


def rebuild(leaves: dict[str, Any]) -> Any:
    """Return the nested value that a map of kept leaves describes; leaves that are not kept stay as written."""
    root: dict[str, Any] = {}
    for pointer, leaf in leaves.items():
        value = leaf["value"] if isinstance(leaf, dict) and set(leaf) == {"value"} else leaf
        parts = pointer.split("/")[1:]
        if not parts:
            return value
        here = root
        for part in parts[:-1]:
            inner = here.setdefault(part, {})
            if not isinstance(inner, dict):
                inner = here[part] = {}
            here = inner
        here[parts[-1]] = value
    return root
