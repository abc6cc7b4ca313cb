"""GT1507 invented-argument: an id that no message and no result supplied.

What it finds: an argument of a call by the model that holds an id (a UUID, a ULID, a prefixed or long hexadecimal
    one) which stands in no message, input or result before it.
Why it matters: models write ids that look right; the call then concerns nothing, or somebody else's entity.
Example: get_order(order_id="7d0f4c0e-…") where no result and no message holds that id.
Not a finding: an id of the request itself (arguments named like idempotency_key, request_id, nonce, trace_id); an id
    that an earlier call of the run introduced; an id after a result whose body was left out.
Options: fields ([]): further names of arguments whose ids the caller makes up.
Needs: arguments, messages of the user, results.
References: the list of shapes is `ids/1`; numbers and dates are never ids by shape.
"""

import re
from collections.abc import Iterator

from goldentrace.model.finding import Finding, Needs
from goldentrace.rules.registry import Unchecked, finding, rule
from goldentrace.rules.subject import Subject

CODE = "GT1507"
OWN = re.compile(
    r"idem|nonce|request_?id|client_?(?:token|id|ref)|correlation|trace_?id|span_?id|session|message_?id|reference",
    re.IGNORECASE,
)
_NEW = re.compile(r"<new:([a-z]+)(?::\d+)?>")


@rule(CODE, "invented-argument", severity="note", needs={Needs.ARGUMENTS, Needs.RESULTS})
def invented_argument(subject: Subject) -> Iterator[Finding | Unchecked]:
    """Yield one finding per argument."""
    own = {str(name) for name in subject.option(CODE, "fields", [])}
    silent = 0
    for operation in subject.operations:
        if operation.first.origin != "model":
            continue
        for pointer, leaf in operation.args.items():
            match = _NEW.search(leaf) if isinstance(leaf, str) else None
            if match is None:
                continue
            name = pointer.partition("#")[0].partition("~")[0].rpartition("/")[2]
            if not name or name in own or OWN.search(name) or pointer.startswith("#"):
                continue
            if not subject.has_messages:
                silent += 1
                continue
            yield finding(
                CODE, f"{operation.label}: {pointer} holds an id ({match[1]}) that nothing before it supplied",
                lines=[operation.first.call_line], labels=[operation.label], tool_name=operation.tool_name,
                pointer=pointer,
            )  # fmt: skip
    if silent:
        yield Unchecked("the source records no message of the user, which may hold the id")
