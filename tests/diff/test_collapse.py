"""Long maps collapse as a plain search for the next container would have it, in time that grows with the map."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from goldentrace.codec.canonical import LEAF_DIGITS, canonical, digest
from goldentrace.diff.collapse import collapse, collapse_like
from goldentrace.model.operation import LeafMap
from goldentrace.model.pointer import parent


def may_collapse(leaf: object) -> bool:
    return isinstance(leaf, str) and "<" not in leaf


def plain_next(shown: LeafMap) -> str | None:
    held = [pointer for pointer, leaf in shown.items() if pointer and may_collapse(leaf)]
    near = Counter(map(parent, held))
    wide = Counter(parent(parent(pointer)) for pointer in held)
    usable = [place for place, size in near.items() if size > 1 or place in shown]
    for sizes, places in ((near, usable), (wide, [place for place, size in wide.items() if size > 1])):
        if places:
            return max(places, key=lambda place: (place.count("/"), sizes[place], place))
    return None


def plain_collapse_at(shown: LeafMap, full: LeafMap, container: str) -> None:
    def is_below(pointer: str) -> bool:
        return pointer.startswith((f"{container}/", f"{container}#"))

    inside = {p: leaf for p, leaf in full.items() if (p == container or is_below(p)) and may_collapse(leaf)}
    for pointer in [p for p, leaf in shown.items() if is_below(p) and may_collapse(leaf)]:
        del shown[pointer]
    shown.pop(container, None)
    if inside:
        shown[container] = f"leaves[{len(inside)}] {digest(canonical(inside), LEAF_DIGITS)}"


def plain_collapse(leaves: LeafMap, max_leaves: int) -> LeafMap:
    shown = dict(leaves)
    while len(shown) > max_leaves and (container := plain_next(shown)) is not None:
        plain_collapse_at(shown, leaves, container)
    return shown


def is_collapsed(leaf: object) -> bool:
    return isinstance(leaf, str) and leaf.startswith("leaves[")


def plain_collapse_like(leaves: LeafMap, golden: LeafMap) -> LeafMap:
    shown = dict(leaves)
    containers = [p for p, leaf in golden.items() if is_collapsed(leaf) and not is_collapsed(leaves.get(p))]
    for container in sorted(containers, key=lambda pointer: (-pointer.count("/"), pointer)):
        plain_collapse_at(shown, leaves, container)
    return shown


pointers = st.builds(
    lambda keys, suffix: "".join(f"/{key}" for key in keys) + suffix,
    st.lists(st.sampled_from(["a", "b", "0", "1", "ab", "a~1b", ""]), max_size=4),
    st.sampled_from(["", "", "", "#json", "#object"]),
)
leaf = st.sampled_from(["x", "y", "<id>", "leaves[2] h:1"]) | st.just({"value": 1})
maps = st.dictionaries(pointers, leaf, max_size=14)


@settings(max_examples=300)
@given(maps, st.integers(1, 6))
def test_containers_collapse_in_the_order_of_a_plain_search(leaves: LeafMap, max_leaves: int) -> None:
    assert collapse(leaves, max_leaves) == plain_collapse(leaves, max_leaves)


@settings(max_examples=300)
@given(maps, maps)
def test_a_map_is_written_in_the_shape_of_any_golden(leaves: LeafMap, golden: LeafMap) -> None:
    assert collapse_like(leaves, golden) == plain_collapse_like(leaves, golden)


def test_thousands_of_containers_cost_no_walk_over_all_leaves_each() -> None:
    leaves: LeafMap = {f"/rows/{n}/cells/{m}": f"int h:{n}{m}" for n in range(3000) for m in range(10)}
    assert list(collapse(leaves, 64)) == ["/rows"]
    golden: LeafMap = {f"/rows/{n}/cells": "leaves[10] h:0" for n in range(3000)}
    assert set(collapse_like(leaves, golden)) == set(golden)
