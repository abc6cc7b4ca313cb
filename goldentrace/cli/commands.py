"""The table of commands: a command's module is imported when the command is used or its own help is asked for.

Also the way from arguments to a command and from click's errors to ours: click would exit with 2 for a wrong option,
which here means that behaviour changed. Must not know what any command does.
"""

import importlib
from typing import Any, Final

import click

import goldentrace
from goldentrace.errors import ConfigError
from goldentrace.exitcodes import NO_VERDICT, OK

HELP: Final[dict[str, str]] = {
    "init": "Write goldentrace.yaml, an example scenario and .gitattributes.",
    "demo": "See it work: record an example agent, break it, diff; offline.",
    "record": "Run scenarios and write their goldens, or make one from a file.",
    "run": "Run scenarios and keep their traces as candidates.",
    "diff": "Compare candidates with goldens, or two files.",
    "check": "Run, lint and diff with one exit code: what CI calls.",
    "lint": "Check traces against the rules.",
    "pending": "List the goldens that a diff proposes.",
    "accept": "Make pending goldens the goldens.",
    "show": "Show the timeline of one trace.",
    "stats": "Sum up traces: success, latency, attempts, limits.",
    "cache": "Show what a cache of tool results would have saved.",
    "normalize": "Print the normalized form of a trace.",
    "import": "Convert a trace of any known format to goldentrace/1.",
    "formats": "List the formats that can be read.",
    "fmt": "Bring goldens and profiles into canonical form.",
    "eval": "Measure the rules against labelled runs.",
    "explain": "Explain a code.",
    "rules": "List the rules and the codes of changes.",
    "schema": "Print the JSON Schema of a file format.",
    "config": "Print the configuration in effect.",
    "serve": "Start a fault-injecting tool server.",
    "script": "Make scripts for the scripted model.",
}
"""Name -> what it does, in the order of `--help`. Here, so that `--help` imports no command."""

MODULES: Final[dict[str, str]] = {"eval": "evaluation", "import": "importing"}
"""Commands whose module under goldentrace/cli has another name than the command; the function is named like the
module."""


class Commands(click.Group):
    """The group that imports a command on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table."""
        return list(HELP)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Return a command, None where the table has none of that name."""
        if cmd_name not in HELP:
            return None
        module = MODULES.get(cmd_name, cmd_name)
        found = getattr(importlib.import_module(f"goldentrace.cli.{module}"), module)
        assert isinstance(found, click.Command), "each module of the table holds its command"
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names. Raises: ConfigError with the nearest name."""
        name = args[0]
        if name not in HELP and not name.startswith("-"):
            import difflib

            close = difflib.get_close_matches(name, HELP, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}? " if close else ""
            raise ConfigError(f"no command {name!r}", next_step=f"{hint}`goldentrace --help` lists the commands")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the table of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(HELP.items()))


EPILOG: Final = """\b
Exit codes: 0 behaviour is the same, 2 behaviour changed or a rule found a defect,
            3 no verdict (bad input, a missing golden or run, an error)."""


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(goldentrace.__version__, "--version", message="goldentrace %(version)s")
@click.pass_context
def main(ctx: click.Context) -> int:
    """Golden-trace regression tests for agents that call tools.

    Record a run that you know is good, commit its golden, and compare every later run with it.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        return NO_VERDICT
    return OK


def run_command(arguments: list[str]) -> Any:
    """Run a command and return its exit code.

    Raises: ConfigError for a wrong command line, and whatever the command raises.
    """
    try:
        return main.main(arguments, prog_name="goldentrace", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except SystemExit as stop:  # click ends the program after completion, and where help meets a closed pipe
        return OK if stop.code == 0 or {"-h", "--help", "--version"} & set(arguments) else NO_VERDICT
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except click.exceptions.NoSuchOption as error:
        raise _wrong_option(error) from None
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help())
        return NO_VERDICT
    except click.UsageError as error:
        raise ConfigError(_one_clause(error.format_message()), next_step=_try_help(error.ctx)) from None
    except click.ClickException as error:
        raise ConfigError(_one_clause(error.format_message()), next_step="check the arguments") from None


def _wrong_option(error: click.exceptions.NoSuchOption) -> ConfigError:
    import difflib

    known: list[str] = []
    if error.ctx is not None:
        for parameter in error.ctx.command.get_params(error.ctx):
            if isinstance(parameter, click.Option):
                known += [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--")]
    name = error.option_name
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}? " if close else ""
    return ConfigError(f"no such option: {name}", next_step=f"{hint}{_try_help(error.ctx)}")


def _try_help(ctx: click.Context | None) -> str:
    return f"`{ctx.command_path if ctx is not None else 'goldentrace'} --help` shows what it takes"


def _one_clause(message: str) -> str:
    text = " ".join(message.split()).rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
