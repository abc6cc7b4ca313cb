"""One try of a retry loop that a tool runs by itself. This module must not wait or decide to try again."""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from goldentrace.model.event import ErrorClass, Status
from goldentrace.record.failures import Failure, failure_in_result, owed_wait_ms
from goldentrace.record.payloads import Written

if TYPE_CHECKING:
    from goldentrace.record.calls import Call
    from goldentrace.record.session import Session


class Attempt:
    """One try; a context manager. Made by `Recorder.attempt`. Outside of a recorded tool it does nothing.

    An exception that leaves the block is the try's result, and goes on. A try that left no exception, and of which
    nothing was said, has failed if another one follows it, and is the call's result if none does.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._call: Call | None = None

    def __enter__(self) -> Self:
        self._call = self._session.calls.scope().call
        if self._call is not None:
            with self._session.guard:
                self._session.begin_try(self._call)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and self._call is not None:
            self._session.fail_call(self._call, error)

    def response(self, response: Any) -> None:
        """Say what came back: an HTTP response with an error status is the try's result."""
        at = self._session.now()
        failure = failure_in_result(response, at.time_ns)
        if failure is not None:
            self._end(failure)

    def fail(
        self,
        status: Status = "error",
        *,
        error_class: ErrorClass = "tool_error",
        http_status: int | None = None,
        headers: Mapping[str, Any] | None = None,
        sent: bool | None = None,
    ) -> None:
        """Say that the try failed. headers: of the response, for what its Retry-After owes."""
        with self._session.guard:
            owed_ms = None if headers is None else owed_wait_ms(headers, self._session.now().time_ns)
            self._end(Failure(status, error_class, http_status, owed_ms, sent))

    def _end(self, failure: Failure) -> None:
        with self._session.guard:
            if self._call is not None and self._call.is_open:
                self._session.write_result(self._call, failure, Written(), self._session.now())
