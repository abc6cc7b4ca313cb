"""JUnit XML: one testcase per trace; a failure is exit code 2, an error is 3.

Only attributes that strict readers know (Jenkins' xUnit plugin validates against a schema, GitLab drops what it does
not know); times are left out, because the report does not measure any.
"""

from goldentrace.model.report import Report, TraceReport
from goldentrace.report import text
from goldentrace.report.json_document import counted
from goldentrace.report.places import why_no_verdict
from goldentrace.report.sanitise import xml
from goldentrace.report.values import plural

MAX_TEXT = 100_000
"""Characters of one failure: GitLab refuses files of more than 30 MB."""


def render(report: Report, *, width: int, color: bool, verbosity: int) -> str:  # noqa: ARG001 - every format takes them
    """Return the report as JUnit XML."""
    statuses = [trace.status(report.fail_on) for trace in report.traces]
    failures = statuses.count("changed")
    errors = sum(status not in ("clean", "changed") for status in statuses)
    counts = f'tests="{len(statuses)}" failures="{failures}" errors="{errors}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="goldentrace" {counts}>']
    lines.append(f'  <testsuite name="goldentrace {xml(report.command)}" {counts} skipped="0">')
    for trace in report.traces:
        lines += _testcase(trace, report)
    lines += ["  </testsuite>", "</testsuites>"]
    return "\n".join(lines) + "\n"


def _testcase(trace: TraceReport, report: Report) -> list[str]:
    suite, _, name = trace.name.rpartition("/")
    classname = "goldens" + (f".{suite.replace('/', '.')}" if suite else "")
    head = f'    <testcase classname="{xml(classname)}" name="{xml(name)}"'
    status = trace.status(report.fail_on)
    if status == "clean":
        return [head + "/>"]
    why = why_no_verdict(trace)
    if why is not None:
        return [
            head + ">",
            f'      <error message="{xml(why)}" type="goldentrace.{status}">{_body(trace, report)}</error>',
            "    </testcase>",
        ]
    found = counted(trace)
    codes = ", ".join(dict.fromkeys(f"{subject.code} {subject.name}" for subject in found))
    message = f"{plural(trace.count('error'), 'error')}: {codes}"
    return [
        head + ">",
        f'      <failure message="{xml(message)}" type="goldentrace.changed">{_body(trace, report)}</failure>',
        "    </testcase>",
    ]


def _body(trace: TraceReport, report: Report) -> str:
    """The text report of this trace alone, as a terminal shows it."""
    alone = Report(report.command, [trace], fail_on=report.fail_on, config_path=report.config_path)
    shown = text.render(alone, width=100, color=False, verbosity=0)
    if len(shown) > MAX_TEXT:
        shown = shown[:MAX_TEXT] + "\n... cut ..."
    return "\n".join(xml(line) for line in shown.split("\n"))
