"""The rules over one trace, as the commands `lint`, `check` and `record` share them. Must not print."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from goldentrace.model.change import Change, Comparison
from goldentrace.model.config import Scenario
from goldentrace.model.finding import Finding, LintResult
from goldentrace.model.normal import NormalTrace
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from goldentrace.normalize.offsets import place_in_time

if TYPE_CHECKING:
    from goldentrace.rules.acceptance import Acceptance


def lint_trace(
    trace: Trace,
    normal: NormalTrace,
    profile: Profile,
    scenario: Scenario | None = None,
    *,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
) -> LintResult:
    """Return what the rules say of a trace, the profile's suppressions applied. normal: its normalized form.

    Raises: ConfigError for an unknown rule, for wrong options or suppressions in the profile.
    """
    from goldentrace.rules.acceptance import accept, suppressions
    from goldentrace.rules.registry import run_rules

    place_in_time(normal, trace)
    budgets = msgspec.to_builtins(scenario.budgets) if scenario is not None else None
    result = run_rules(trace, normal, profile, budgets=budgets, select=select, ignore=ignore)
    return accept(result, suppressions(profile), today())


def accepted(lint: LintResult, accepts: tuple[dict[str, Any], ...]) -> LintResult:
    """Return the findings with those marked that a golden's header accepts; an entry that accepts nothing is noted.

    accepts: mappings {code, tool, field, reason}. Raises: ConfigError for an entry of another form.
    """
    if not accepts:
        return lint
    from goldentrace.rules.acceptance import accept, idle, read_entries

    entries = read_entries(accepts, "accepts", "the golden accepts")
    notes = tuple(idle(entries, [lint], today()))
    return msgspec.structs.replace(accept(lint, entries, today()), notes=(*lint.notes, *notes))


def read_known(path: str) -> "list[Acceptance]":
    """Return the findings that a file of known ones lists. Raises: InputError, ConfigError naming the file."""
    from goldentrace.codec.yaml_document import read_yaml
    from goldentrace.errors import ConfigError, InputError, Where
    from goldentrace.rules.acceptance import read_entries
    from goldentrace.sources.bytestream import read_file

    try:
        data = read_file(Path(path))
    except OSError as error:
        raise InputError(
            f"cannot be read: {(error.strerror or 'unknown error').lower()}", where=Where(path),
            next_step="write it with: goldentrace lint FILE --write-known " + path,
        ) from None  # fmt: skip
    value = read_yaml(data, path).value
    listed = value.get("known") if isinstance(value, dict) and value.keys() == {"known"} else None
    try:
        return read_entries(listed, "known", "known finding", needs_reason=False, is_exact=True)
    except ConfigError as error:
        raise ConfigError(error.what, where=Where(path), next_step=error.next_step) from None


def write_known(path: str, results: Sequence[LintResult]) -> int:
    """Write today's unaccepted findings as known ones; return how many entries they are."""
    import yaml

    from goldentrace.rules.acceptance import known_entries
    from goldentrace.store.atomic import write_atomically

    entries = known_entries(results)
    text = yaml.safe_dump({"known": entries}, sort_keys=False, allow_unicode=True, default_flow_style=False)
    write_atomically(Path(path), text.encode())
    return len(entries)


def idle_entries(results: Sequence[LintResult], profile: Profile, known: "Sequence[Acceptance]") -> list[str]:
    """Return what to say of suppressions and known findings that accept nothing in any of the results."""
    from goldentrace.rules.acceptance import idle, suppressions

    return idle([*suppressions(profile), *known], results, today())


def today() -> str:
    """Return the date on which suppressions are judged, ISO."""
    return date.today().isoformat()  # noqa: DTZ011 - the day of whoever wrote `until`


def explained(lint: LintResult, comparison: Comparison) -> LintResult:
    """Return the findings with those marked that a change explains: they end at an event of its operation, and one
    cause is one error."""
    lines = _explained_lines(comparison)

    def marked(finding: Finding) -> Finding:
        change = lines.get(finding.lines[-1]) if finding.lines else None
        if change is None:
            return finding
        return _mark(finding, f"explained by {change.code} {change.name} at {change.label}")

    return msgspec.structs.replace(lint, findings=[marked(finding) for finding in lint.findings])


def _mark(finding: Finding, why: str) -> Finding:
    return finding if finding.accepted is not None else msgspec.structs.replace(finding, accepted=why)


def _explained_lines(comparison: Comparison) -> dict[int, Change]:
    """Line of the candidate -> the error that concerns its operation."""
    lines: dict[int, Change] = {}
    for change in comparison.changes:
        if change.candidate_index is None or change.severity != "error":
            continue
        for attempt in comparison.candidate.operations[change.candidate_index].attempts:
            for line in (attempt.call_line, attempt.result_line):
                lines.setdefault(line, change)
    lines.pop(0, None)
    return lines


def known_rules() -> list[tuple[str, str, str, str]]:
    """Return (code, name, severity, summary) of every rule."""
    from goldentrace.rules.registry import rules

    return [(rule.code, rule.name, rule.severity, rule.summary) for rule in rules().values()]
