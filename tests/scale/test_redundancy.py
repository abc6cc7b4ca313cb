"""The metric of RedundancyBench, and what the rules reach on the set of injected repeats."""

import json
from pathlib import Path

import pytest

from goldentrace.errors import InputError
from goldentrace.model.profile import Profile
from goldentrace.scale.redundancy import Annotation, predict, read_annotations, score, task_of
from goldentrace.sources.registry import read_traces
from tests.conftest import Cli

FAILURE = "^Error"


def labels(value: object) -> list[Annotation]:
    return read_annotations(json.dumps(value).encode(), "labels.json")


def test_the_metric_is_micro_averaged_over_annotated_tasks() -> None:
    annotations = labels(
        [
            {"task_id": "a", "redundant_step_idx": [1, 2, 3, 4], "redundant_step_type": ["x", "x", "y", "y"]},
            {"task_id": "b", "redundant_step_idx": []},
            {"task_id": 3, "redundant_step_idx": [7, 8]},
        ]
    )
    found = score(annotations, {"a": {1, 2, 9}, "b": set(), "unknown": {5}})
    assert (found.tasks, found.tp, found.fp, found.fn) == (3, 2, 1, 4)
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == pytest.approx(1 / 3)
    assert found.f1 == pytest.approx(4 / 9)
    assert found.accuracy == pytest.approx(1 / 3)
    assert found.trajectory_accuracy == pytest.approx(2 / 3)
    assert found.by_type == {"x": (2, 2), "y": (0, 2), "unlabelled": (0, 2)}


def test_nothing_predicted_and_nothing_labelled_are_no_division() -> None:
    assert score(labels([{"task_id": "a", "redundant_step_idx": []}]), {}).f1 == 0


def test_version_2_of_the_labels_is_flattened() -> None:
    entry = {"task_id": "a", "redundant_step_idx": [[3, 4], [9]], "redundant_step_type": ["Duplicated", "Abnormal"]}
    assert labels([entry])[0].steps == {3: "Duplicated", 4: "Duplicated", 9: "Abnormal"}


@pytest.mark.parametrize(
    "value",
    [{}, [1], [{"task_id": "a"}], [{"task_id": "a", "redundant_step_idx": ["1"]}], [{"task_id": "a", "redundant_step_idx": [-1]}],
     [{"task_id": "a", "redundant_step_idx": []}, {"task_id": "a", "redundant_step_idx": []}]],
)  # fmt: skip
def test_what_is_no_annotation_is_refused(value: object) -> None:
    with pytest.raises(InputError):
        labels(value)


def test_a_call_of_the_simulated_user_is_never_predicted(tmp_path: Path) -> None:
    call = {"id": "c", "name": "look", "arguments": {"a": 1}}
    messages: list[dict[str, object]] = []
    for requestor in ("user", "user", "assistant", "assistant"):
        role = requestor
        messages.append({"role": role, "content": None, "tool_calls": [{**call, "requestor": requestor}]})
        messages.append({"role": "tool", "id": "c", "requestor": requestor, "content": "same", "error": False})
    file = tmp_path / "runs.json"
    file.write_text(json.dumps({"tasks": [], "simulations": [{"id": "s", "task_id": "9", "messages": messages}]}))
    (trace,) = read_traces(file)
    assert task_of(trace, ["9"]) == "9"
    assert predict(trace, Profile(name="default@1")) == {6, 7}


def test_a_failed_call_made_good_later_is_predicted(tmp_path: Path) -> None:
    call = {"id": "c", "name": "look", "arguments": {"a": 1}, "requestor": "assistant"}
    messages: list[dict[str, object]] = []
    for error in (True, False):
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "id": "c", "requestor": "assistant", "content": str(error), "error": error})
    file = tmp_path / "runs.json"
    file.write_text(json.dumps({"tasks": [], "simulations": [{"id": "s", "task_id": "9", "messages": messages}]}))
    (trace,) = read_traces(file)
    assert predict(trace, Profile(name="default@1")) == {0, 1}


def test_injected_repeats_are_found_and_no_control_is(corpus: Path) -> None:
    folder = corpus / "rb_style_injected"
    annotations = read_annotations((folder / "annotation.json").read_bytes(), "annotation.json")
    known = [entry.task_id for entry in annotations]
    predictions, controls = {}, 0
    labelled = {entry.task_id: set(entry.steps) for entry in annotations}
    for trace in read_traces(folder / "traces.json"):
        task = task_of(trace, known)
        assert task is not None
        predictions[task] = predict(trace, Profile(name="default@1"), select=("GT1004", "GT1005"), patterns=[FAILURE])
        for call in trace.calls():
            place = (call.extra or {})["message_index"]
            if "inj" in call.call_id and place not in labelled[task]:
                controls += 1
                assert place not in predictions[task], "a control is no repeat"
    found = score(annotations, predictions)
    assert controls > 100
    assert found.tasks == 118
    assert found.f1 >= 0.95
    assert found.precision >= 0.98


def test_the_command_prints_the_metric(cli: Cli, corpus: Path) -> None:
    folder = corpus / "rb_style_injected"
    options = ["--annotations", folder / "annotation.json", "--traces", folder / "traces.json"]
    done = cli(
        "eval",
        "redundancy",
        *options,
        "--error-pattern",
        FAILURE,
        "--write-predictions",
        "p.json",
        "--output-format",
        "json",
    )
    assert done.code == 0, done.stderr
    first = json.loads(done.stdout)
    assert first["f1"] >= 0.95
    again = cli("eval", "redundancy", *options, "--predictions", "p.json", "--output-format", "json")
    assert json.loads(again.stdout)["f1"] == first["f1"]


def test_files_that_do_not_belong_together_give_3(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text('[{"task_id": "nobody", "redundant_step_idx": [1]}]')
    run = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
    (tmp_path / "run.json").write_text(json.dumps(run))
    done = cli("eval", "redundancy", "--annotations", "labels.json", "--traces", "run.json")
    assert done.code == 3
    assert "no run of a labelled task" in done.stderr
