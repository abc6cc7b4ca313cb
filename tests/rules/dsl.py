"""Traces in a few words, for the case files of rules. One item per event:

    turn [carries c1 c2 | cut]             a turn of the model; the results in its request; cut off at its token limit
    user TEXT · says TEXT                  a message of the user, of the agent
    read config.json limit=5 -> A          a call: positional words are `path`, NAME=VALUE an argument, NAME:VALUE a field
                                           of the event (key, resource, access, parent, agent, op, raw); its result
    also read b.txt -> B                   a call in one batch with the call before it
    harness read a -> A                    a call that the harness (sdk, transport) made
    read#c7 a -> A                         a call with that call id (default c1, c2, …)
    read a -> ! rate_limited 429 owed=2000 [unsent] [: TEXT]     a failure: class, HTTP status
    read a -> ...                          no result · `-> -` a result whose body was left out
    result c1 -> A                         a further result for a call
    approve · deny                         about the next call
    decide retry reason=auth delay=200     about the last call; `decide run escalate` about the run
    effect charge key=k1 value=500 · limit max_tool_calls 5 [tool=NAME] · +250ms (the clock moves) · no clock
    end OUTCOME STOP_REASON · cut          default: end success final_answer
    ITEM x5                                five times

A call without `->` gives "ok". Values are JSON where they parse, else text.
"""

import json
import re
from typing import Any

import msgspec

from goldentrace.model.event import ABSENT, Approval, Message
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from tests.traces import Run

TOOLS: dict[str, Any] = {
    "read": {"access": "read", "resource": "{path}"},
    "write": {"access": "write", "resource": "{path}"},
    "send_email": {"access": "write"},
    "charge": {"access": "write"},
}
"""What is declared in every case; `bash`, `fetch` and all other tools are not."""
FIELDS = {"key": "idempotency_key", "op": "op_id", "raw": "args_raw"}
ORIGINS = ("harness", "sdk", "transport")
STATUSES = {"timeout": "timeout", "cancelled": "cancelled", "denied": "denied", "unfinished": "unfinished"}


def profile_of(case: dict[str, Any]) -> Profile:
    """Return the profile of a case: the tools of every case, its own, and its other keys."""
    own = dict(case.get("profile") or {})
    tools = {**TOOLS, **(own.pop("tools", None) or {}), **(case.get("tools") or {})}
    return msgspec.convert({"name": "case@1", "tools": tools, **own}, Profile)


def trace_of(case: dict[str, Any]) -> Trace:
    """Return the trace of a case."""
    telling = _Telling(case)
    items = case["trace"]
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else ""
        for _ in range(_times(item)):
            telling.tell(_without_times(item), is_batch=following.startswith("also ") or item.startswith("also "))
    return telling.done()


def _times(item: str) -> int:
    match = re.search(r" x(\d+)$", item)
    return int(match[1]) if match else 1


def _without_times(item: str) -> str:
    return re.sub(r" x\d+$", "", item)


def value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class _Telling:
    def __init__(self, case: dict[str, Any]) -> None:
        self.run = Run(**(case.get("start") or {}))
        self.case = case
        self.batch = 0
        self.last_id = ""
        self.attempts: dict[str, int] = {}
        self.verdict: str | None = None
        self.trace: Trace | None = None

    def tell(self, item: str, *, is_batch: bool) -> None:
        word, _, rest = item.partition(" ")
        if word == "turn":
            fields: dict[str, Any] = {"finish_reason": "length"} if rest == "cut" else {}
            if rest.startswith("carries"):
                fields["input_call_ids"] = rest.split()[1:]
            self.run.turn(**fields)
        elif word in ("user", "says"):
            self.run.add(Message, role="user" if word == "user" else "assistant", text=rest)
        elif word in ("approve", "deny") and not rest:
            self.verdict = "approved" if word == "approve" else "denied"
        elif word == "decide":
            self.decide(rest.split())
        elif word == "effect":
            name, fields = _named(rest)
            value = fields.pop("value", None)
            raw = {} if value is None else {"value": msgspec.Raw(json.dumps(value).encode())}
            self.run.effect(name, **{k: str(v) for k, v in fields.items()}, **raw)
        elif word == "limit":
            name, fields = _named(rest)
            name, _, reached = name.partition(" ")
            extra = {"extra": {"tool_name": fields["tool"]}} if "tool" in fields else {}
            self.run.limit(name, value=int(reached), max=int(reached), **extra)
        elif word == "result":
            call_id, _, result = rest.partition(" -> ")
            self.run.result(call_id, **_result(result))
        elif item == "no clock":
            self.run.at(None)
        elif match := re.fullmatch(r"\+(\d+)ms", item):
            assert self.run.second is not None
            self.run.at(self.run.second + int(match[1]) / 1000)
        elif word in ("end", "cut"):
            self.finish(word, rest)
        else:
            self.call(item, is_batch=is_batch)

    def call(self, item: str, *, is_batch: bool) -> None:
        is_member = item.startswith("also ")
        if is_batch and not is_member:
            self.batch += 1
        left, arrow, result = item.removeprefix("also ").partition(" -> ")
        words = re.findall(r'(?:[^\s"]|"[^"]*")+', left)
        origin = words.pop(0) if words[0] in ORIGINS else "model"
        tool, _, call_id = words.pop(0).partition("#")
        self.run.count += 1
        call_id = call_id or f"c{self.run.count}"
        fields: dict[str, Any] = {"origin": origin}
        args: dict[str, Any] = {}
        path = []
        for word in words:
            name, separator, value = re.match(r"(\w*)([=:]?)(.*)", word, re.DOTALL).groups()  # type: ignore[union-attr]
            if separator == "=" and name:
                args[name] = value_of(value)
            elif separator == ":" and name in (*FIELDS, "resource", "access", "parent", "agent"):
                fields[FIELDS.get(name, name)] = value
            else:
                path.append(word)
        if path:
            args = {"path": " ".join(path), **args}
        if is_batch:
            fields["batch"] = f"b{self.batch}"
        if self.verdict is not None:
            self.run.add(Approval, call_id=call_id, verdict=self.verdict)
            self.verdict = None
        raw = {} if "args_raw" in fields else {"args": args}
        self.run.count -= 1
        self.run.call(tool, raw.get("args"), status=None, id=call_id, **fields)
        self.last_id = call_id
        if result != "...":
            self.run.result(call_id, **_result(result if arrow else "ok"))

    def decide(self, words: list[str]) -> None:
        is_about_run = words[0] == "run"
        if is_about_run:
            words = words[1:]
        _, fields = _named(" ".join(words[1:]))
        if "delay" in fields:
            fields["delay_ms"] = float(fields.pop("delay"))
        self.run.decide(words[0], None if is_about_run else self.last_id, **fields)

    def finish(self, word: str, rest: str) -> None:
        given = rest.split()
        self.trace = self.run.cut() if word == "cut" else self.run.end(*given)

    def done(self) -> Trace:
        if self.trace is None:
            self.finish("end", "")
        assert self.trace is not None
        return Trace(
            self.trace.events, "run.jsonl", incomplete=self.trace.incomplete,
            format=self.case.get("format", "goldentrace/1"), coverage=self.case.get("coverage") or {},
        )  # fmt: skip


def _named(text: str) -> tuple[str, dict[str, Any]]:
    plain, named = [], {}
    for word in text.split():
        name, separator, value = word.partition("=")
        if separator:
            named[name] = value_of(value)
        else:
            plain.append(word)
    return " ".join(plain), named


def _result(text: str) -> dict[str, Any]:
    if text == "-":
        return {"result": ABSENT}
    if not text.startswith("! "):
        return {"result": value_of(text)}
    head, _, body = text[2:].partition(" : ")
    fields: dict[str, Any] = {"result": value_of(body) if body else None}
    for word in head.split():
        if word.isdigit():
            fields["http_status"] = int(word)
        elif word.startswith("owed="):
            fields["owed_ms"] = float(word[5:])
        elif word == "unsent":
            fields["sent"] = False
        else:
            fields["error_class"] = word
            fields["status"] = STATUSES.get(word, "error")
    return {"status": "error", **fields}
