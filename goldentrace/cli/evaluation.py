"""`goldentrace eval`: rules against labels that people gave. Thin: parse, call, print."""

import json
from pathlib import Path

import click

from goldentrace.cli.options import output_options, project_options
from goldentrace.cli.output import Output
from goldentrace.cli.project import Project
from goldentrace.errors import InputError, Where
from goldentrace.exitcodes import OK


@click.group("eval")
def evaluation() -> None:
    """Measure the rules against labelled runs."""


@evaluation.command()
@click.option("--annotations", required=True, metavar="FILE", help="The labels, RedundancyBench version 1 or 2.")
@click.option("--traces", "files", required=True, multiple=True, metavar="FILE", help="The runs; repeatable.")
@click.option("--predictions", metavar="FILE", help="Score these (same form as the labels) instead of the rules.")
@click.option("--write-predictions", metavar="FILE", help="Write what the rules predict, in that form.")
@click.option(
    "--select", multiple=True, metavar="CODE", help="Rules that predict; default: all about repeats but GT1003."
)
@click.option(
    "--error-pattern", multiple=True, metavar="REGEX", help="A result that matches is a failed call; repeatable."
)
@project_options
@output_options()
def redundancy(  # noqa: PLR0913 - one parameter per option
    project: Project,
    output: Output,
    *,
    annotations: str,
    files: tuple[str, ...],
    predictions: str | None,
    write_predictions: str | None,
    select: tuple[str, ...],
    error_pattern: tuple[str, ...],
) -> int:
    """Score the rules by the metric of RedundancyBench, version 1.

    Precision, recall and F1 over message indexes, micro-averaged; a flagged call counts with its result. A format that
    has no flag for a failed tool needs --error-pattern for GT1005.
    """
    from goldentrace.codec.patterns import compile_pattern
    from goldentrace.scale import redundancy as bench

    for pattern in error_pattern:
        compile_pattern(pattern, Where("--error-pattern"))
    labels = bench.read_annotations(_read(annotations), annotations)
    if predictions is not None:
        given = bench.read_annotations(_read(predictions), predictions)
        found = {entry.task_id: set(entry.steps) for entry in given}
    else:
        profile = project.profiles.load(project.profile_name()).profile
        found = _predict(
            files, [entry.task_id for entry in labels], profile, select or bench.RULES, error_pattern, output
        )
    if write_predictions is not None:
        from goldentrace.store.atomic import write_atomically

        rows = [{"task_id": task, "redundant_step_idx": sorted(steps)} for task, steps in sorted(found.items())]
        write_atomically(Path(write_predictions), (json.dumps(rows, indent=1) + "\n").encode())
    result = bench.score(labels, found)
    numbers = {
        "tasks": result.tasks, "tp": result.tp, "fp": result.fp, "fn": result.fn,
        "precision": round(result.precision, 4), "recall": round(result.recall, 4), "f1": round(result.f1, 4),
        "accuracy": round(result.accuracy, 4), "trajectory_accuracy": round(result.trajectory_accuracy, 4),
    }  # fmt: skip
    if output.format == "json":
        by_type = {kind: {"found": hits, "labelled": of} for kind, (hits, of) in result.by_type.items()}
        output.put_json({"command": "eval redundancy", **numbers, "by_type": by_type})
        return OK
    output.put_lines([f"{name:<20} {value}" for name, value in numbers.items()])
    output.put_lines([f"  {kind:<28} {hits} of {of}" for kind, (hits, of) in result.by_type.items()])
    return OK


def _predict(
    files: tuple[str, ...], tasks: list[str], profile: object, select: tuple[str, ...], patterns: tuple[str, ...],
    output: Output,
) -> dict[str, set[int]]:  # fmt: skip
    from goldentrace.model.profile import Profile
    from goldentrace.scale import redundancy as bench
    from goldentrace.sources.choice import left_out_note
    from goldentrace.sources.document import open_document
    from goldentrace.sources.registry import document_traces

    assert isinstance(profile, Profile)
    found: dict[str, set[int]] = {}
    unlabelled = 0
    for file in files:
        document = open_document(file)
        for trace in document_traces(document):
            task = bench.task_of(trace, tasks)
            if task is None:
                unlabelled += 1
                continue
            if task in found:
                raise InputError(
                    f"two runs of task {task!r}", where=Where(file),
                    next_step="the labels are of one run per task: give the runs that were labelled",
                )  # fmt: skip
            found[task] = bench.predict(trace, profile, select=select, patterns=patterns)
        left_out = left_out_note(document, is_full=output.verbosity > 0)
        if left_out is not None:
            output.say(f"note: {left_out}")
    missing = len(tasks) - len(found)
    if unlabelled:
        output.say(f"{unlabelled} runs have no labels and are not scored")
    if missing:
        output.say(f"{missing} labelled tasks have no run; nothing is predicted for them")
    if not found:
        raise InputError(
            "no run of a labelled task", where=Where(files[0]), next_step="check that both files belong together"
        )
    return found


def _read(path: str) -> bytes:
    from goldentrace.sources.bytestream import read_file

    try:
        return read_file(Path(path))
    except OSError as error:
        raise InputError(
            f"cannot be read: {(error.strerror or 'unknown error').lower()}",
            where=Where(path),
            next_step="check the path",
        ) from None
