"""What a call was refused with."""

from collections.abc import Callable

from goldentrace.errors import GoldentraceError


def error_of(call: Callable[[], object]) -> GoldentraceError | None:
    """The error of ours that a call raises, None if it raises none; any other error is not caught."""
    try:
        call()
    except GoldentraceError as error:
        return error
    return None
