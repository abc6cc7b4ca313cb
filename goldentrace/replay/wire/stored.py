"""Conversations that the server holds, so that a request may bring only what is new: one store for each wire format.

Bounded: the oldest go first. This module must not know what a script is.
"""

from collections import OrderedDict
from typing import Any, Final, Protocol

from goldentrace.replay.wire.wire import RequestRefused

MAX_STORED: Final = 1000


class Store(Protocol):
    """What a wire format holds of the replies it has served."""

    def expand(self, body: Any) -> Any:
        """Return a request body with what the server holds of its conversation put in. Raises: RequestRefused."""

    def keep(self, expanded: Any, reply: dict[str, Any]) -> None:
        """Remember a reply and what led to it, if the request asks for that."""

    def get(self, reply_id: str) -> dict[str, Any] | None:
        """Return a reply that may be fetched again, None where there is none of that id."""


class NoStore:
    """Chat Completions: each request brings the whole conversation."""

    def expand(self, body: Any) -> Any:
        return body

    def keep(self, expanded: Any, reply: dict[str, Any]) -> None:
        """Keep nothing."""

    def get(self, reply_id: str) -> dict[str, Any] | None:  # noqa: ARG002 (one shape for all stores)
        return None


class ResponseStore:
    """Responses: `previous_response_id` continues one that was not served with `store: false`."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[list[Any], dict[str, Any]]] = OrderedDict()

    def expand(self, body: Any) -> Any:
        """Return the body with the items of the response that it continues before its own.

        Raises: RequestRefused where that response is not known.
        """
        previous = body.get("previous_response_id") if isinstance(body, dict) else None
        if previous is None:
            return body
        if not isinstance(previous, str) or previous not in self._kept:
            raise RequestRefused(
                f"Previous response with id {previous!r} not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        items, response = self._kept[previous]
        return {**body, "input": [*items, *response["output"], *_input_items(body)]}

    def keep(self, expanded: Any, reply: dict[str, Any]) -> None:
        """Remember a response and the items that led to it."""
        if reply.get("store") is not False:
            _add(self._kept, reply["id"], (_input_items(expanded), reply))

    def get(self, reply_id: str) -> dict[str, Any] | None:
        """Return a stored response, None where there is none of that id."""
        kept = self._kept.get(reply_id)
        return None if kept is None else kept[1]


def _input_items(body: dict[str, Any]) -> list[Any]:
    items = body.get("input", [])
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return list(items) if isinstance(items, list) else []


class ThreadStore:
    """Messages: `thread` creates a conversation or continues one, each reply of it once.

    Source: anthropic-sdk-python, `types/beta/beta_message_thread_param.py` and the errors beside it.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._continued: set[str] = set()

    def expand(self, body: Any) -> Any:
        """Return the body with the messages, the system prompt and the tools of the thread that it continues.

        Raises: RequestRefused where that thread is not known, or its last reply was continued already.
        """
        previous = _previous_message_id(body)
        if previous is None:
            return body
        if previous not in self._kept:
            raise RequestRefused(f"No usable thread was found for {previous!r}.", status=404, code="thread_not_found")
        if previous in self._continued:
            raise RequestRefused(f"{previous!r} has already been continued.", code="thread_already_continued")
        held = self._kept[previous]
        own = body.get("messages")
        return {**held, **body, "messages": [*held["messages"], *(own if isinstance(own, list) else [])]}

    def keep(self, expanded: Any, reply: dict[str, Any]) -> None:
        """Remember a reply of a thread and what led to it."""
        if not isinstance(expanded.get("thread"), dict):
            return
        if (previous := _previous_message_id(expanded)) is not None:
            self._continued.add(previous)
        said = {"role": "assistant", "content": reply["content"]}
        held = {key: expanded[key] for key in ("system", "tools") if key in expanded}
        _add(self._kept, reply["id"], {**held, "messages": [*expanded["messages"], said]})

    def get(self, reply_id: str) -> dict[str, Any] | None:  # noqa: ARG002 (one shape for all stores)
        return None


def _previous_message_id(body: Any) -> str | None:
    thread = body.get("thread") if isinstance(body, dict) else None
    if not isinstance(thread, dict) or thread.get("type") != "continue":
        return None
    previous = thread.get("previous_message_id")
    if not isinstance(previous, str):
        raise RequestRefused("thread.previous_message_id: Field required")
    return previous


def _add(kept: OrderedDict[str, Any], key: str, value: Any) -> None:
    kept[key] = value
    while len(kept) > MAX_STORED:
        kept.popitem(last=False)


def stores() -> dict[str, Store]:
    """Return a store for each wire format, by its name."""
    return {"openai-chat": NoStore(), "openai-responses": ResponseStore(), "anthropic-messages": ThreadStore()}
