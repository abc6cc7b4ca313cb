"""Options that several commands share, each in one place, and the values that are made of them.

Every option can be set by GOLDENTRACE_OPT_NAME too. Must not read files: `Project` does, when a command asks.
"""

import functools
import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from goldentrace.cli.output import Output
from goldentrace.errors import ConfigError

PREFIX: Final = "GOLDENTRACE_OPT_"
Command = TypeVar("Command", bound=Callable[..., Any])

REPORT_FORMATS: Final = ("text", "concise", "json", "jsonl", "markdown", "github", "gitlab", "junit", "sarif")
PLAIN_FORMATS: Final = ("text", "json")
SEVERITIES: Final = ("error", "warning", "note")


class Option(click.Option):
    """An option that its environment variable can set."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.envvar is None:
            self.envvar = (
                PREFIX + next(name for name in self.opts if name.startswith("--"))[2:].replace("-", "_").upper()
            )


def option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """Return the decorator of one option."""
    return click.option(*names, cls=Option, **settings)


def together(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return one decorator for several options, shown in this order."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def packed(name: str, kind: type, *options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return the decorator of a command's own options, which reach it as one value. kind: a dataclass of those
    names."""
    from dataclasses import fields

    names = [entry.name for entry in fields(kind)]

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def with_value(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **{name: kind(**{field: kwargs.pop(field) for field in names})}, **kwargs)

        return together(*options)(with_value)

    return decorate


def output_options(*, has_reports: bool = False) -> Callable[[Command], Command]:
    """Return the decorator that gives a command its `output`. has_reports: it writes a report, in any format."""
    formats = REPORT_FORMATS if has_reports else PLAIN_FORMATS
    report = option(
        "--report", "reports", multiple=True, metavar="FORMAT=PATH", help="Write a report to a file too; repeatable."
    )
    options = together(
        option("--output-format", "format_name", type=click.Choice(formats), help="Format of standard output."),
        *([report] if has_reports else []),
        option("-q", "--quiet", "is_quiet", is_flag=True, help="Say less."),
        option("-v", "--verbose", "is_verbose", is_flag=True, help="Say more."),
        option("--color", type=click.Choice(("auto", "always", "never")), default="auto", help="Colours."),
        option("--width", type=click.IntRange(40, 1000), help="Columns to fill; default: the terminal's, else 80."),
        option("--no-input", is_flag=True, help="Never ask."),
    )

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def with_output(
            *args: Any, format_name: str | None, is_quiet: bool, is_verbose: bool, color: str, width: int | None,
            no_input: bool, reports: tuple[str, ...] = (), **kwargs: Any,
        ) -> Any:  # fmt: skip
            chosen = format_name or (_default_format() if has_reports else "text")
            verbosity = -1 if is_quiet else 1 if is_verbose else 0
            output = Output(chosen, tuple(map(_report_target, reports)), verbosity, color, width, not no_input)
            return function(*args, output=output, **kwargs)

        return options(with_output)

    return decorate


def _default_format() -> str:
    return "github" if os.environ.get("GITHUB_ACTIONS", "").lower() == "true" else "text"


def _report_target(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not path or name not in REPORT_FORMATS:
        raise ConfigError(
            f"--report {text!r} is no FORMAT=PATH", next_step=f"a format is one of {', '.join(REPORT_FORMATS)}"
        )
    return name, path


def project_options(function: Command) -> Command:
    """Give a command its `project`: the configuration in effect, and the places of files."""
    options = together(
        option("--config", metavar="FILE", help="Configuration; default: goldentrace.yaml here."),
        option("--profile", metavar="NAME", help="Normalizer profile, in place of the configured one."),
        option("--goldens", metavar="DIR", help="Folder of the goldens, in place of the configured one."),
        option("--environment", metavar="NAME", help="Entry of `environments` to use."),
        option("--ci", "is_ci", is_flag=True, help="Behave as in CI: never write goldens."),
        option("--write-in-ci", is_flag=True, help="Write goldens even in CI."),
        option("--artifacts", metavar="DIR", help="Keep candidates, logs and pending goldens here."),
    )

    @functools.wraps(function)
    def with_project(
        *args: Any, config: str | None, profile: str | None, goldens: str | None, environment: str | None, is_ci: bool,
        write_in_ci: bool, artifacts: str | None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        from goldentrace.cli.ci import find_ci
        from goldentrace.cli.project import open_project

        overrides = {
            name: (value, _origin(name))
            for name, value in (("profile", profile), ("goldens", goldens))
            if value is not None
        }
        project = open_project(
            config,
            overrides,
            environment=environment,
            ci=find_ci(is_forced=is_ci, may_write=write_in_ci),
            artifacts=artifacts,
        )
        return function(*args, project=project, **kwargs)

    return options(with_project)  # type: ignore[return-value]


def _origin(name: str) -> str:
    """Where a value came from: the option, or its variable."""
    context = click.get_current_context()
    if context.get_parameter_source(name) is click.core.ParameterSource.ENVIRONMENT:
        return PREFIX + name.upper()
    return f"--{name.replace('_', '-')}"


def reading_options(function: Command) -> Command:
    """Give a command its `reading`: how files of traces are read."""
    options = together(
        option("--format", "source_format", metavar="NAME", help="Format of the file; default: detected by content."),
        option("--trace", "trace_id", metavar="ID", help="Which trace, where the file holds several."),
        max_bytes_option,
    )

    @functools.wraps(function)
    def with_reading(
        *args: Any, source_format: str | None, trace_id: str | None, max_bytes: int | None, **kwargs: Any
    ) -> Any:
        from goldentrace.cli.progress import reading_bar
        from goldentrace.sources.document import MAX_BYTES
        from goldentrace.store.sides import Reading

        bar = functools.partial(reading_bar, is_quiet=bool(kwargs.get("is_quiet")))
        reading = Reading(source_format, trace_id, max_bytes or MAX_BYTES, bar=bar)
        return function(*args, reading=reading, **kwargs)

    return options(with_reading)  # type: ignore[return-value]


max_bytes_option = option("--max-bytes", type=click.IntRange(min=1), metavar="N", help="Limit on the size of a file.")

jobs_option = option("--jobs", type=click.IntRange(1, 256), metavar="N", help="How many scenarios run at a time.")

fail_on_option = option("--fail-on", type=click.Choice(SEVERITIES), help="The lowest severity that gives exit code 2.")

compare_options = together(
    option("--allow-incomplete", is_flag=True, help="Compare what is there of a recording that was cut off."),
    option("--allow-narrower", is_flag=True, help="Compare a candidate that states fewer decisions, or no turns."),
)

KNOWN: Final = frozenset(
    {
        "ALL",
        "ALLOW_DEFECTS",
        "ALLOW_INCOMPLETE",
        "ALLOW_NARROWER",
        "ARTIFACTS",
        "CHECK",
        "CHECKLIST",
        "CI",
        "CODE",
        "COLOR",
        "CONFIG",
        "DESCRIPTION",
        "ENVIRONMENT",
        "EXPLAIN",
        "FAIL_ON",
        "FOLLOW",
        "FORMAT",
        "FROM",
        "GOLDENS",
        "IGNORE",
        "JOBS",
        "KIND",
        "KNOWN",
        "LIST",
        "MAX_BYTES",
        "NATIVE",
        "NO_INPUT",
        "OUTPUT",
        "OUTPUT_FORMAT",
        "PROFILE",
        "QUIET",
        "REPORT",
        "SELECT",
        "SHOW_ORIGIN",
        "SUITE",
        "TRACE",
        "VERBOSE",
        "VERIFY",
        "WIDTH",
        "WITH_CI",
        "WRITE_IN_CI",
        "WRITE_KNOWN",
    }
)
"""NAME of every GOLDENTRACE_OPT_NAME that some command takes; a test holds it to the commands."""


def check_variables() -> None:
    """Refuse a misspelt GOLDENTRACE_OPT_NAME: it would be ignored in silence. Raises: ConfigError."""
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in KNOWN:
            from goldentrace.codec.yaml_document import suggest

            raise ConfigError(f"no option has the variable {name}", next_step=suggest(name.removeprefix(PREFIX), KNOWN))
