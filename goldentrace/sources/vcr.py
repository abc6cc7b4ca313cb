"""VCR cassettes (vcrpy, pytest-recording) of traffic with a model: YAML or JSON, each provider's API told by itself.

A cassette keeps no clock but the `Date` of responses, in whole seconds and of another machine: it is not taken.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from goldentrace.errors import InputError
from goldentrace.model.trace import Trace
from goldentrace.sources import providers
from goldentrace.sources.document import Document
from goldentrace.sources.head import Head
from goldentrace.sources.requestlog import Exchange, read_exchanges
from goldentrace.sources.shapes import as_count, as_object, as_objects, as_text
from goldentrace.sources.source import Source

NAME: Final = "vcr"
MAX_NODES: Final = 5_000_000
"""Values in a cassette, aliases counted as often as they are used: a bomb of aliases ends here."""
_OPENING: Final = re.compile(rb"^interactions:", re.MULTILINE)
_MODEL_PATH: Final = re.compile(rb"(?:uri|url)[\"']?:\s*[\"']?\S*/(?:chat/completions|responses|messages)\b")


class _Loader(yaml.CSafeLoader):
    """JSON's values: a date stays the text that it is."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def is_cassette(head: Head) -> bool:
    """Whether it is a cassette, of whatever traffic."""
    return head.has_key("interactions") or _OPENING.search(head.data) is not None


def matches(head: Head) -> bool:
    """Whether it is a cassette with a request to a model in sight."""
    return is_cassette(head) and _MODEL_PATH.search(head.data) is not None


def read(document: Document) -> Iterator[Trace]:
    """Yield one trace per conversation. Raises: InputError where the cassette is no YAML or an alias bomb."""
    yield from read_exchanges(document, NAME, _exchanges(document))


def _exchanges(document: Document) -> Iterator[Exchange]:
    for interaction in as_objects(as_object(load(document)).get("interactions")):
        request, response = as_object(interaction.get("request")), as_object(interaction.get("response"))
        status = response.get("status")
        exchange = providers.read_exchange(
            as_text(request.get("uri")) or as_text(request.get("url")) or "", body_of(request), body_of(response),
            request_headers=as_object(request.get("headers")), response_headers=as_object(response.get("headers")),
            status=as_count(as_object(status).get("code")) or as_count(status),
        )  # fmt: skip
        if exchange is not None:
            yield exchange


def body_of(message: dict[str, Any]) -> Any:
    """Return the body of a request or response, under any of the names that recorders give it."""
    if message.get("parsed_body") is not None:
        return message["parsed_body"]
    body = message.get("body", message.get("content"))
    if isinstance(body, dict) and not body.keys().isdisjoint(("string", "base64_string")):
        return body.get("string", body.get("base64_string"))
    return body


def load(document: Document) -> Any:
    """Return the value of a cassette. Raises: InputError where it is no YAML or an alias bomb."""
    data = document.read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("not UTF-8", where=document.where(line), next_step="record the cassette again") from None
    try:
        value = yaml.load(text, _Loader)  # noqa: S506 (a safe loader with fewer types)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise InputError(
            f"not YAML: {getattr(error, 'problem', None) or 'damaged'}",
            where=document.where(mark.line + 1 if mark is not None else None), next_step="record the cassette again",
        ) from None  # fmt: skip
    except (ValueError, RecursionError, OverflowError) as error:
        raise InputError(
            f"not a cassette: {type(error).__name__}", where=document.where(), next_step="record the cassette again"
        ) from None
    if _count(value) > MAX_NODES:
        raise InputError(
            f"more than {MAX_NODES:,} values",
            where=document.where(),
            next_step="split the cassette, or undo its aliases",
        )
    return value


def _count(value: Any) -> int:
    """How many values there are, aliases counted again; stops soon after the limit."""
    count = 0
    waiting = [value]
    while waiting and count <= MAX_NODES:
        each = waiting.pop()
        count += 1
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return count


SOURCE: Final = Source(
    NAME, "VCR cassettes of OpenAI and Anthropic APIs", matches, read,
    notes="one trace per conversation; no clock of its own",
)  # fmt: skip
