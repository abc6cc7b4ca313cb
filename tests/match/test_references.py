"""Is the id that the candidate used the one that the golden's placeholder means?"""

from typing import Any

import pytest

from goldentrace.codec.golden import encode_golden, read_golden
from goldentrace.diff.differ import as_golden, compare
from goldentrace.match.references import References, Relation
from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import Profile
from tests.traces import Run, normal

U1, U2, U3, U4 = (f"0f8fad5b-d9cb-469f-a165-70867728950{n}" for n in range(4))
PROFILE = Profile(name="test@1")


def file(run: Run) -> NormalTrace:
    return read_golden(encode_golden(as_golden(normal(run.end()), PROFILE)), "g")


def codes(golden: Run, candidate: Run) -> list[str]:
    """By the golden's file against the run, and, where labels suffice, against the run's own file."""
    found = compare(file(golden), normal(candidate.end()), PROFILE)
    assert not found.not_comparable
    return [c.code for c in found.changes]


def by_files(golden: Run, candidate: Run) -> list[str]:
    return [c.code for c in compare(file(golden), file(candidate), PROFILE).changes]


def got(*bodies: Any) -> Run:
    run = Run()
    for n, body in enumerate(bodies):
        run.call("get", {"n": n}, body)
    return run


@pytest.mark.parametrize(
    ("golden", "candidate", "found"),
    [
        (got({"id": U1}).call("use", {"a": U1}), got({"id": U2}).call("use", {"a": U2}), []),
        (got({"id": U1, "o": U2}).call("use", {"a": U1}), got({"id": U1, "o": U2}).call("use", {"a": U2}), ["GT109"]),
        (got({"id": U1}, {"id": U2}).call("use", {"a": U1}), got({"id": U1}, {"id": U2}).call("use", {"a": U2}), ["GT109"]),
        (got({"id": U1}).call("use", {"a": U1}), got({"id": U1}).call("use", {"a": U3}), ["GT109"]),
        (got({"id": U1}).call("use", {"a": U3}), got({"id": U1}).call("use", {"a": U1}), ["GT109"]),
        (got({}).call("use", {"a": U1, "b": U1}), got({}).call("use", {"a": U2, "b": U3}), ["GT109"]),
        (got({}).call("use", {"a": U1, "b": U2}), got({}).call("use", {"a": U3, "b": U3}), ["GT109"]),
        (got({}).call("use", {"a": U1}).call("see", {"a": U1}), got({}).call("use", {"a": U2}).call("see", {"a": U2}), []),
        (got({}).call("use", {"a": U1}).call("see", {"a": U1}), got({}).call("use", {"a": U2}).call("see", {"a": U3}), ["GT109"]),
        (got({"id": U1}).call("use", {"a": f"x {U1} {U3}"}), got({"id": U2}).call("use", {"a": f"x {U2} {U4}"}), []),
        (got({"id": U1}).call("use", {"a": f"x {U1} {U3}"}), got({"id": U2}).call("use", {"a": f"x {U4} {U2}"}), ["GT109"]),
        (got({"id": U1}).call("use", {"a": f"x {U1}"}), got({"id": U2}).call("use", {"a": f"y {U2}"}), ["GT101"]),
        (got({"id": U1}).call("use", {"a": U1}), got({"id": U2}).call("use", {"a": "text"}), ["GT101"]),
    ],
)  # fmt: skip
def test_an_id_is_the_one_that_was_meant_or_another(golden: Run, candidate: Run, found: list[str]) -> None:
    assert codes(golden, candidate) == found
    assert by_files(golden, candidate) == found


def test_where_the_place_is_gone_the_same_operation_suffices_and_another_does_not() -> None:
    golden = got({"deep": {"id": U1}}, {}).call("use", {"a": U1})
    assert codes(golden, got({"other": [U2]}, {}).call("use", {"a": U2})) == []
    assert codes(golden, got({}, {"deep": {"id": U2}}).call("use", {"a": U2})) == ["GT109"]


def test_members_of_a_list_are_told_by_digest_and_in_strings_by_number() -> None:
    rows = [{"id": U1, "k": "book"}, {"id": U2, "k": "lamp"}]
    golden = got(rows, f"ids {U3} and {U4}").call("use", {"a": U2, "b": U4})
    assert codes(golden, got(rows[::-1], f"ids {U3} and {U4}").call("use", {"a": U2, "b": U4})) == []
    assert codes(golden, got(rows, f"ids {U4} and {U3}").call("use", {"a": U2, "b": U4})) == ["GT109"]
    assert by_files(golden, got(rows[::-1], f"ids {U3} and {U4}").call("use", {"a": U2, "b": U4})) == []


def test_an_id_inside_a_string_of_arguments_is_known_by_its_number() -> None:
    golden = Run().call("a", {"t": f"x {U1} {U2}"}).call("b", {"id": U2})
    assert codes(golden, Run().call("a", {"t": f"x {U3} {U4}"}).call("b", {"id": U4})) == []
    assert codes(golden, Run().call("a", {"t": f"x {U3} {U4}"}).call("b", {"id": U3})) == ["GT109"]


def test_two_members_of_a_batch_that_shared_a_new_id_and_no_longer_do() -> None:
    def run(one: str, other: str) -> Run:
        return Run().turn().call("a", {"k": one}, batch="x").call("b", {"k": other}, batch="x")

    assert codes(run(U1, U1), run(U2, U2)) == []
    assert codes(run(U1, U2), run(U3, U4)) == []
    assert codes(run(U1, U1), run(U2, U3)) == ["GT109"]
    assert codes(run(U1, U2), run(U3, U3)) == ["GT109"]


def test_clock_values_and_secrets_are_no_ids() -> None:
    from tests.traces import clock

    secret, other = "sk-" + "a1" * 10, "sk-" + "b2" * 10
    golden = Run().call("a", {"at": clock(0), "k": secret}).call("b", {"k": secret})
    assert codes(golden, Run().at(60).call("a", {"at": clock(60), "k": other}).call("b", {"k": other})) == []
    assert codes(golden, Run().call("a", {"at": clock(0), "k": secret}).call("b", {"k": other})) == ["GT109"]
    assert codes(golden, Run().call("a", {"at": clock(0), "k": U1}).call("b", {"k": secret})) == ["GT101"]
    assert codes(Run().call("a", {"at": clock(0)}), Run().call("a", {"at": U1})) == ["GT101"]
    assert codes(Run().call("a", {"at": U1}), Run().call("a", {"at": clock(0)})) == ["GT101"]


def test_labels_are_looked_up_on_their_own_side() -> None:
    golden, candidate = normal(got({}, {}).end()), normal(got({}).call("new", {}).end())
    references = References(golden, candidate)
    assert (references.golden_index("get#2"), references.candidate_index("get#2")) == (1, None)
    assert (references.golden_index("new#1"), references.candidate_index("new#1")) == (None, 1)


@pytest.mark.parametrize(
    ("written", "actual", "relation"),
    [
        ("null", "null", Relation.SAME), ("null", "int h:00", Relation.CHANGED), ("<gone#1/id>", "<get#1/id>", Relation.OTHER_ID),
        ("<new:uuid>", "null", Relation.CHANGED), ("<new:uuid>", "<new:hex>", Relation.OTHER_ID),
        ("<get#1/id>", "<unknown:uuid>", Relation.UNKNOWN), ("<now>", "<now>", Relation.SAME), ("<now>", "<today+1d>", Relation.CHANGED),
    ],
)  # fmt: skip
def test_how_two_written_leaves_relate(written: str, actual: str, relation: Relation) -> None:
    trace = normal(got({"id": U1}).call("use", {"a": U1}).end())
    references = References(trace, trace, {0: 0, 1: 1})
    assert references.relate(written, actual, 1, "/a", 0) is relation
    assert references.relate("str[1] h:00 " + written, "str[1] h:11 " + actual, 1, "/a", 0) is Relation.CHANGED


def test_of_several_ids_in_one_leaf_another_one_weighs_more_than_one_that_is_not_known() -> None:
    trace = normal(got({"id": U1}).call("use", {"a": U1}).end())
    references = References(trace, trace, {0: 0, 1: 1})
    for written in ("<get#1/id> <new:uuid>", "<new:uuid> <get#1/id>"):
        actual = written.replace("<get#1/id>", "<unknown:uuid>").replace("new:uuid", "new:hex")
        assert references.relate(written, actual, 1, "/a", 0) is Relation.OTHER_ID


def test_keys_of_the_second_alignment_name_golden_operations() -> None:
    golden, candidate = normal(got({"id": U1}).end()), normal(got({}, {"id": U1}).end())
    references = References(golden, candidate)
    assert references.resolved("<get#1/id>", None) == ("<>", 0)
    assert references.resolved("<gone#1/id> <now>", None) == ("<> <>", "gone#1", "clock")
    assert references.resolved("<get#2/id>", {1: 0}) == ("<>", 0)
    assert references.resolved("<get#1/id>", {1: 0}) == ("<>", "candidate 0")
