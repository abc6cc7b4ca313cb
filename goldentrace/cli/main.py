"""The entry point: runs a command and turns whatever happens into exit code 0, 2 or 3 and one message.

The only place that catches every exception and that writes errors. It must not know what a command does, and nothing
heavy is imported here: `--version` does not even need click.
"""

import gc
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from goldentrace.exitcodes import CHANGED, NO_VERDICT, OK

if TYPE_CHECKING:
    from goldentrace.errors import GoldentraceError

PROGRAM: Final = "goldentrace"
DEBUG: Final = "GOLDENTRACE_DEBUG"


def main() -> int:
    """Run the command line of this process, which ends with it.

    What stands in memory then is given back as a whole: the collector would look at all of it once more while the
    interpreter ends, which cost a small diff 5 of its 66 ms.
    """
    code = run()
    gc.freeze()
    return code


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 or 3, never another.

    arguments: without the program's name; default: those of the process.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    _use_utf8()
    if arguments == ["--version"]:
        from goldentrace import __version__

        _write(f"{PROGRAM} {__version__}\n")
        code = OK
    else:
        code = _without_collector(arguments)
    _flush()
    return code


def _without_collector(arguments: list[str]) -> int:
    """Run a command without the collector of cyclic garbage, which a server needs and nothing else.

    A diff of two traces of 200,000 events makes millions of objects and frees none before its end: the collector took
    1.3 of its 3.7 s of CPU, for the same peak of memory.
    """
    is_paused = gc.isenabled() and arguments[:1] != ["serve"]
    if is_paused:
        gc.disable()
    try:
        return _guarded(arguments)
    finally:
        if is_paused:
            gc.enable()


def _guarded(arguments: list[str]) -> int:
    """Run a command; whatever it raises becomes a message and NO_VERDICT."""
    from goldentrace.errors import GoldentraceError

    try:
        from goldentrace.cli.commands import run_command

        return _only_known(run_command(arguments))
    except GoldentraceError as error:
        _fail(error, arguments)
    except KeyboardInterrupt:
        _say(f"{PROGRAM}: interrupted: no verdict")
    except BrokenPipeError:
        pass  # nobody reads what was to be said; a command returns its verdict all the same (see Output.put)
    except MemoryError:
        _fail(GoldentraceError("out of memory", next_step="lower --max-bytes, or split the input"), arguments)
    except Exception as error:
        _fail(_internal(error), arguments)
    return NO_VERDICT


def _only_known(code: Any) -> int:
    return code if code in (OK, CHANGED) else NO_VERDICT


def _internal(error: Exception) -> "GoldentraceError":
    from goldentrace import __version__
    from goldentrace.cli.terminal import printable
    from goldentrace.errors import GoldentraceError

    hint = f"; {DEBUG}=1 shows where it happened"
    if os.environ.get(DEBUG):
        import traceback

        traceback.print_exception(error)
        hint = ""
    return GoldentraceError(
        f"internal error: {printable(f'{type(error).__name__}: {error}')[:500]}",
        next_step=f"this is a defect of goldentrace {__version__}: report the command and this message{hint}",
    )


def _fail(error: "GoldentraceError", arguments: list[str]) -> None:
    """Write the message to stderr and, where a machine reads stdout, the report that holds it to stdout."""
    from goldentrace.cli.terminal import printable

    texts = [str(error.where)] if error.where is not None else []
    texts += error.next_step.split("\n") if error.next_step else []
    _say("\n".join([f"{PROGRAM}: {printable(error.what)}", *(f"  {printable(text)}" for text in texts)]))
    if _wants_json(arguments):
        try:
            from goldentrace.cli.output import error_report

            _write(error_report(error, arguments))
        except Exception as second:
            _say(f"{PROGRAM}: the JSON report could not be written either: {printable(repr(second))[:200]}")


def _wants_json(arguments: list[str]) -> bool:
    name = "--output-format"
    for index, word in enumerate(arguments):
        if word == "--":
            break
        if word == f"{name}=json" or (word == name and arguments[index + 1 : index + 2] == ["json"]):
            return True
    return (
        not any(word.startswith(name) for word in arguments)
        and os.environ.get("GOLDENTRACE_OPT_OUTPUT_FORMAT") == "json"
    )


def _say(text: str) -> None:
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # stderr is closed: the exit code is all that is left


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError):
        pass  # as above


def _use_utf8() -> None:
    """Reports are UTF-8 whatever the locale says; a lone surrogate of a file name is shown, not fatal."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started with the descriptor closed
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - lives as long as the process
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _flush() -> None:
    """Write out what is left; where the reader is gone, let the interpreter's own last flush go nowhere.

    Without this a closed pipe turns the exit code into 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _redirect_to_nothing(stream)


def _redirect_to_nothing(stream: Any) -> None:
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        pass
