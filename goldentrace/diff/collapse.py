"""Long argument maps: containers collapse into one digest until the map is short enough to review.

The deepest, then largest, then lexically last container goes first; ids never collapse, because a golden must name
them. The candidate's paired operation is written in the golden's shape, whatever its own length. The alignment key is
not affected: it is made from the full map.
"""

from collections import Counter
from typing import Final

from goldentrace.codec.canonical import LEAF_DIGITS, canonical, digest
from goldentrace.model import pointer as pointers
from goldentrace.model.operation import LeafMap

COLLAPSED: Final = "leaves["
"""How a collapsed container is written: `leaves[12] h:…`, the number of leaves and the digest over their map."""


def collapse(leaves: LeafMap, max_leaves: int) -> LeafMap:
    """Return the map with at most `max_leaves` leaves where ids allow it; the same object where it is short enough."""
    if len(leaves) <= max_leaves:
        return leaves
    shown = dict(leaves)
    while len(shown) > max_leaves:
        container = _next_container(shown)
        if container is None:
            break
        _collapse_at(shown, leaves, container)
    return shown


def collapse_like(leaves: LeafMap, golden: LeafMap) -> LeafMap:
    """Return the map with those containers collapsed that the golden's written map has collapsed."""
    containers = [p for p, leaf in golden.items() if isinstance(leaf, str) and leaf.startswith(COLLAPSED)]
    if not containers:
        return leaves
    shown = dict(leaves)
    for container in sorted(containers, key=lambda pointer: (-pointer.count("/"), pointer)):
        _collapse_at(shown, leaves, container)
    return shown


def _next_container(shown: LeafMap) -> str | None:
    """The deepest, then largest, then lexically last container of at least two leaves that may collapse."""
    sizes: Counter[str] = Counter()
    for pointer, leaf in shown.items():
        if pointer and _may_collapse(leaf):  # the root is in no container, not even when it has collapsed itself
            sizes[pointers.parent(pointer)] += 1
    usable = [container for container, size in sizes.items() if size > 1 or container in shown]
    if not usable:
        # Nothing holds two leaves: what is left is spread, so the nearest common containers are tried.
        wider: Counter[str] = Counter()
        for pointer, leaf in shown.items():
            if pointer and _may_collapse(leaf):
                wider[pointers.parent(pointers.parent(pointer))] += 1
        usable = [container for container, size in wider.items() if size > 1]
        sizes = wider
    if not usable:
        return None
    return max(usable, key=lambda container: (container.count("/"), sizes[container], container))


def _may_collapse(leaf: object) -> bool:
    return isinstance(leaf, str) and "<" not in leaf


def _collapse_at(shown: LeafMap, full: LeafMap, container: str) -> None:
    inside = {
        pointer: leaf
        for pointer, leaf in full.items()
        if (pointer == container or pointer.startswith((container + "/", container + "#"))) and _may_collapse(leaf)
    }
    for pointer in [
        p for p, leaf in shown.items() if p.startswith((container + "/", container + "#")) and _may_collapse(leaf)
    ]:
        del shown[pointer]
    shown.pop(container, None)
    if inside:
        shown[container] = f"{COLLAPSED}{len(inside)}] {digest(canonical(inside), LEAF_DIGITS)}"
