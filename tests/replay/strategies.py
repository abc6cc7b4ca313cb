"""Drawn replies and scripts: whatever a model could say, as far as three wire formats can carry it."""

from hypothesis import strategies as st

from goldentrace.codec.canonical import encode
from goldentrace.replay.conversation import Call, Reply, TokenUsage
from goldentrace.replay.script import (
    FOREVER,
    AgentScript,
    Condition,
    Cut,
    ProviderError,
    Script,
    ScriptedCall,
    ScriptTurn,
)

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
tool_names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_-]{0,20}", fullmatch=True)
call_ids = st.from_regex(r"(call|toolu)_[A-Za-z0-9]{8,24}", fullmatch=True)

json_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
json_values = st.recursive(
    json_leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
json_objects = st.dictionaries(texts, json_values, max_size=4)
malformed = st.sampled_from(["{", '{"a": 1', "[1, 2]", "null", '"text"', "{'a': 1}", "größe 🧾", '{"a": 1} trailing'])
usages = st.builds(
    lambda fresh, cached, sent: TokenUsage(fresh + cached, sent, cached),
    st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6),
)  # fmt: skip

calls = st.builds(Call, tool_names, json_objects.map(lambda value: encode(value).decode()) | malformed, call_ids)


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """Return a reply whose finish is one that all three formats have a word for."""
    made = tuple(draw(st.lists(calls, max_size=3)))
    natural = "tool_calls" if made else "stop"
    return Reply(
        reply_id="reply-1",
        model=draw(words),
        text=draw(texts),
        calls=made,
        finish=draw(st.sampled_from([natural, natural, "length", "content_filter"])),
        usage=draw(usages),
    )


conditions = st.builds(
    Condition,
    st.none() | st.sampled_from(["ok", "error"]),
    st.none() | words,
    st.none() | words,
    user_contains=words,
)
errors = st.builds(
    ProviderError,
    st.integers(400, 599),
    st.none() | words,
    st.none() | words,
    st.none() | words,
    st.lists(st.tuples(st.from_regex(r"[a-z][a-z-]{0,10}", fullmatch=True), st.from_regex(r"[ -~]{0,10}", fullmatch=True)),
             max_size=2, unique_by=lambda header: header[0]).map(tuple),
)  # fmt: skip
scripted_calls = st.builds(
    ScriptedCall, words, args=json_objects, call_id=st.none() | call_ids
) | st.builds(ScriptedCall, words, args_raw=malformed | texts, has_id=st.booleans())  # fmt: skip


@st.composite
def turns(draw: st.DrawFn) -> ScriptTurn:
    """Return any turn that a script file can hold."""
    common = {
        "when": tuple(draw(st.lists(conditions, max_size=2))),
        "repeat": draw(st.sampled_from([1, 1, 2, 7])),
        "delay_ms": draw(st.sampled_from([0.0, 0.0, 12.5, 300.0])),
        "is_literal": draw(st.booleans()),
    }
    kind = draw(st.sampled_from(["reply", "reply", "error", "cut"]))
    if kind == "error":
        return ScriptTurn(error=draw(errors), **common)
    made = tuple(draw(st.lists(scripted_calls, max_size=3)))
    text = draw(texts)
    places = ["before_reply", "end", *(["text"] if text else []), *(["arguments"] if made else [])]
    return ScriptTurn(
        text=text,
        calls=made,
        finish=draw(st.none() | st.sampled_from(["stop", "tool_calls", "length", "content_filter"])),
        usage=draw(st.none() | usages),
        cut=Cut(draw(st.sampled_from(places)), draw(st.sampled_from(["close", "reset"]))) if kind == "cut" else None,
        **common,
    )


@st.composite
def agents(draw: st.DrawFn, name: str | None = None) -> AgentScript:
    """Return an agent with its turns; the last turn may repeat for ever."""
    made = draw(st.lists(turns(), min_size=1, max_size=4))
    if draw(st.booleans()):
        last = made[-1]
        made[-1] = ScriptTurn(**{**{f: getattr(last, f) for f in last.__slots__}, "repeat": FOREVER})
    if name is None:
        return AgentScript(turns=tuple(made))
    return AgentScript(
        name, tuple(made), draw(st.none() | words), draw(st.none() | words), tuple(draw(st.lists(words, max_size=2)))
    )


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Return any script that a file can hold."""
    if draw(st.booleans()):
        made = (draw(agents()),)
    else:
        names = draw(st.lists(words, min_size=1, max_size=3, unique=True))
        made = tuple(draw(agents(name)) for name in names)
    return Script(
        name=draw(words),
        agents=made,
        seed=draw(st.integers(-5, 10**9)),
        description=draw(texts),
        error_texts=tuple(draw(st.lists(words, max_size=2))),
        is_strict=draw(st.booleans()),
    )
