"""Who made the attempts of one operation. Shared by the rules on the number of attempts. Must not judge."""

from goldentrace.model.operation import Operation

MAX_ATTEMPTS = 5
"""Above what the clients measured make by default: openai and anthropic SDK 3, botocore 5 (legacy), tenacity examples
3 to 5."""


def retry_layers(operation: Operation) -> list[str]:
    """Return the origins of the attempts after the first, each once, in order of appearance."""
    return list(dict.fromkeys(attempt.origin for attempt in operation.attempts[1:]))
