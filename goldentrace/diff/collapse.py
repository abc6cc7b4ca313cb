"""Long argument maps: containers collapse into one digest until the map is short enough to review.

The deepest, then largest, then lexically last container goes first; ids never collapse, because a golden must name
them. The candidate's paired operation is written in the golden's shape, whatever its own length. The alignment key is
not affected: it is made from the full map.
"""

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
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
    shown = _Shown(leaves)
    shown.rank()
    while len(shown.leaves) > max_leaves:
        container = shown.next_container()
        if container is None:
            break
        shown.collapse(container)
    return shown.leaves


def collapse_like(leaves: LeafMap, golden: LeafMap) -> LeafMap:
    """Return the map with those containers collapsed that the golden's written map has collapsed."""
    containers = [p for p, leaf in golden.items() if _is_collapsed(leaf) and not _is_collapsed(leaves.get(p))]
    if not containers:
        return leaves
    shown = _Shown(leaves, containers)
    for container in sorted(containers, key=lambda pointer: (-pointer.count("/"), pointer)):
        shown.collapse(container)
    return shown.leaves


def _is_collapsed(leaf: object) -> bool:
    return isinstance(leaf, str) and leaf.startswith(COLLAPSED)


class _Last(str):
    """A container that comes before those that it is lexically behind."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


class _Rank:
    """How many leaves each container holds, the deepest, then largest, then lexically last one first. An entry that no
    longer holds is skipped when its turn comes."""

    __slots__ = ("order", "sizes")

    def __init__(self) -> None:
        self.sizes: Counter[str] = Counter()
        self.order: list[tuple[int, int, _Last]] = []

    def count(self, container: str, change: int) -> None:
        self.sizes[container] += change
        self.put(container)

    def put(self, container: str) -> None:
        heapq.heappush(self.order, (-container.count("/"), -self.sizes[container], _Last(container)))


class _Shown:
    """A map while its containers collapse, one after another: a wide map has thousands of them, so that none may cost a
    walk over all leaves."""

    def __init__(self, full: LeafMap, containers: Iterable[str] = ()) -> None:
        """containers: others that may collapse than those of the leaves."""
        self.leaves = dict(full)
        self._full = full
        self._places = sorted({*full, *_containers(full), *containers})
        self._near: _Rank | None = None
        self._wide = _Rank()

    def rank(self) -> None:
        """Prepare for `next_container`."""
        self._near = _Rank()
        for pointer, leaf in self.leaves.items():
            self._count(pointer, leaf, 1)

    def next_container(self) -> str | None:
        """The deepest, then largest, then lexically last container of at least two leaves that may collapse."""
        assert self._near is not None
        near = self._first(self._near, is_near=True)
        # Where nothing holds two leaves, what is left is spread, and the nearest common containers are tried.
        return near if near is not None else self._first(self._wide, is_near=False)

    def collapse(self, container: str) -> None:
        """Write a container as one leaf."""
        inside = {p: self._full[p] for p in self._within(container) if p in self._full and _may_collapse(self._full[p])}
        for pointer in [p for p in self._below(container) if p in self.leaves and _may_collapse(self.leaves[p])]:
            self._remove(pointer)
        if container in self.leaves:
            self._remove(container)
        if inside:
            leaf = f"{COLLAPSED}{len(inside)}] {digest(canonical(inside), LEAF_DIGITS)}"
            self.leaves[container] = leaf
            self._count(container, leaf, 1)

    def _first(self, rank: _Rank, *, is_near: bool) -> str | None:
        while rank.order:
            _, size, container = rank.order[0]
            name = str(container)
            is_usable = rank.sizes[name] > 1 or (is_near and rank.sizes[name] > 0 and name in self.leaves)
            if -size == rank.sizes[name] and is_usable:
                return name
            heapq.heappop(rank.order)
        return None

    def _remove(self, pointer: str) -> None:
        self._count(pointer, self.leaves.pop(pointer), -1)

    def _count(self, pointer: str, leaf: object, change: int) -> None:
        if self._near is None or not pointer:  # the root is in no container, not even when it has collapsed itself
            return
        if _may_collapse(leaf):
            parent = pointers.parent(pointer)
            self._near.count(parent, change)
            self._wide.count(pointers.parent(parent), change)
        self._near.put(pointer)  # a leaf that is a container as well may collapse with one leaf in it

    def _within(self, container: str) -> Iterator[str]:
        yield container
        yield from self._below(container)

    def _below(self, container: str) -> Iterator[str]:
        for mark, behind in (("#", "$"), ("/", "0")):  # the characters next to one another in order
            first = bisect_left(self._places, container + mark)
            yield from self._places[first : bisect_left(self._places, container + behind)]


def _containers(leaves: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for pointer in leaves:
        container = pointers.parent(pointer)
        while container not in found:
            found.add(container)
            container = pointers.parent(container)
    return found


def _may_collapse(leaf: object) -> bool:
    return isinstance(leaf, str) and "<" not in leaf
