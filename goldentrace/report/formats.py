"""Which formats there are, and the two doors into this room. A format is imported only when it is asked for."""

from importlib import import_module
from typing import Final

from goldentrace.errors import ConfigError
from goldentrace.model.report import Report

FORMATS: Final[dict[str, str]] = {
    "text": "goldentrace.report.text",
    "concise": "goldentrace.report.concise",
    "json": "goldentrace.report.json_document",
    "jsonl": "goldentrace.report.json_lines",
    "markdown": "goldentrace.report.markdown",
    "github": "goldentrace.report.github",
    "gitlab": "goldentrace.report.gitlab",
    "junit": "goldentrace.report.junit",
    "sarif": "goldentrace.report.sarif",
}
"""Name of a format -> the module whose `render(report, *, width, color, verbosity)` writes it."""


def render(report: Report, format: str, *, width: int = 80, color: bool = False, verbosity: int = 0) -> str:  # noqa: A002 - the word of the option
    """Return a report in one format, ending in a newline.

    width: columns of `text`, at least 40; color: ANSI colours in `text`; verbosity: -1 the summary alone, 0, 1 all.
    Raises: ConfigError for a format that is not in FORMATS.
    """
    module = FORMATS.get(format)
    if module is None:
        raise ConfigError(f"no such output format: {format}", next_step=f"one of: {', '.join(FORMATS)}")
    written: str = import_module(module).render(report, width=width, color=color, verbosity=verbosity)
    return written


def explain(code: str, *, width: int = 80, color: bool = False) -> str:
    """Return the documentation of a change code or rule; see `report.explanation`."""
    from goldentrace.report.explanation import explain_code

    return explain_code(code, width=width, color=color)
