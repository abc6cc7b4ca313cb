"""The report as JSON Lines: one finding per line, for `grep` and for tools that read as they go.

First a line `report`, then per trace a line `trace` followed by its lines `finding`, last a line `summary` with the
verdict, so that a file without it is known to be cut. The objects are those of the JSON document.
"""

import json
from typing import Any

from goldentrace.model.report import Report
from goldentrace.report.json_document import document


def render(report: Report, *, width: int, color: bool, verbosity: int) -> str:  # noqa: ARG001 - every format takes them
    """Return one line per trace and finding."""
    whole = document(report)
    end = {name: whole.pop(name) for name in ("verdict", "exit_code", "summary", "notes")}
    traces = whole.pop("traces")
    lines: list[dict[str, Any]] = [{"type": "report", **whole}]
    for trace in traces:
        findings = trace.pop("findings")
        lines.append({"type": "trace", **trace})
        lines.extend({"type": "finding", "trace": trace["name"], "finding": finding} for finding in findings)
    lines.append({"type": "summary", **end})
    return "".join(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n" for line in lines)
