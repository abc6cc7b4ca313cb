"""Reads a script from YAML, and writes one, the two being each other's inverse.

An error names file, line and key and says what was probably meant. What is allowed is also written down in
script.schema.json, for editors; a test holds the two together. This module must not play a script.
"""

from pathlib import Path
from typing import Any, Final, get_args

import yaml

from goldentrace.codec.yaml_document import YamlDocument, read_yaml, suggest
from goldentrace.errors import ConfigError, Where
from goldentrace.model.event import MAIN_AGENT
from goldentrace.replay.conversation import FINISHES, TokenUsage
from goldentrace.replay.script import (
    FOREVER,
    AgentScript,
    Condition,
    Cut,
    CutManner,
    CutPlace,
    ProviderError,
    ResultStatus,
    Script,
    ScriptedCall,
    ScriptTurn,
)
from goldentrace.sources.bytestream import read_file

MAX_DELAY_MS: Final = 600_000
MAX_REPEAT: Final = 100_000
SCHEMA_PATH: Final = Path(__file__).with_name("script.schema.json")

_SCRIPT_KEYS: Final = ("script", "description", "seed", "strict", "error_texts", "turns", "agents")
_AGENT_KEYS: Final = ("match", "turns")
_MATCH_KEYS: Final = ("model", "system_contains", "tools")
_TURN_KEYS: Final = ("text", "calls", "finish", "usage", "when", "repeat", "error", "cut", "delay_ms", "literal")
_CALL_KEYS: Final = ("tool", "args", "args_raw", "id")
_WHEN_KEYS: Final = ("status", "tool", "contains", "user_contains")
_ERROR_KEYS: Final = ("status", "type", "code", "message", "headers", "in_stream")
_CUT_KEYS: Final = ("at", "how")
_USAGE_KEYS: Final = ("input_tokens", "output_tokens", "cached_tokens")
_KIND_WORDS: Final[dict[type, str]] = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
}


def read_script(path: str | Path) -> Script:
    """Return the script of a YAML file. Raises: ConfigError with file, line and key."""
    try:
        data = read_file(Path(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"the script cannot be read: {reason}", where=Where(str(path)), next_step="check the path"
        ) from None
    return parse_script(data, str(path))


def parse_script(data: bytes | str, path: str = "<memory>") -> Script:
    """Return the script that YAML text holds. Raises: ConfigError with file, line and key."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return _Parser(read_yaml(raw, path)).script()


class _Parser:
    def __init__(self, document: YamlDocument) -> None:
        self._document = document

    def script(self) -> Script:
        top = self._mapping(self._document.value, "", _SCRIPT_KEYS)
        default = Path(self._document.path).stem if self._document.path != "<memory>" else "script"
        return Script(
            name=self._get(top, "", "script", str, default),
            agents=self._agents(top),
            seed=self._get(top, "", "seed", int, 0),
            description=self._get(top, "", "description", str, ""),
            error_texts=self._texts(top, "", "error_texts"),
            is_strict=self._get(top, "", "strict", bool, True),
            path=self._document.path,
        )

    def _agents(self, top: dict[str, Any]) -> tuple[AgentScript, ...]:
        if ("turns" in top) == ("agents" in top):
            what = "both `turns` and `agents`" if "turns" in top else "neither `turns` nor `agents`"
            raise self._error("", what, "give `turns` for one agent, `agents` for several")
        if "turns" in top:
            return (AgentScript(MAIN_AGENT, self._turns(top["turns"], "/turns")),)
        agents = self._typed(top["agents"], "/agents", dict)
        if not agents:
            raise self._error("/agents", "no agent", "name at least one")
        found = []
        for name in agents:
            place = self._below("/agents", name)
            entry = self._mapping(agents[name], place, _AGENT_KEYS)
            match = self._mapping(entry.get("match", {}), f"{place}/match", _MATCH_KEYS)
            if "turns" not in entry:
                raise self._error(place, "an agent without `turns`", "list its turns")
            found.append(
                AgentScript(
                    name=name,
                    turns=self._turns(entry["turns"], f"{place}/turns"),
                    model=self._get(match, f"{place}/match", "model", str, None),
                    system_contains=self._get(match, f"{place}/match", "system_contains", str, None),
                    tools=self._texts(match, f"{place}/match", "tools"),
                )
            )
        return tuple(found)

    def _turns(self, value: Any, place: str) -> tuple[ScriptTurn, ...]:
        turns = self._typed(value, place, list)
        if not turns:
            raise self._error(place, "no turn", "give at least one: a text, calls, or an error")
        found = tuple(self._turn(turn, f"{place}/{index}") for index, turn in enumerate(turns))
        for index, turn in enumerate(found[:-1]):
            if turn.repeat == FOREVER and not turn.when:
                what = "a turn that is never reached: the one before repeats forever"
                raise self._error(f"{place}/{index + 1}", what, "give the endless turn a `when`, or a count")
        return found

    def _turn(self, value: Any, place: str) -> ScriptTurn:
        entry = self._mapping(value, place, _TURN_KEYS)
        if not {"text", "calls", "error", "cut", "finish"} & entry.keys():
            raise self._error(place, "a turn that says nothing", "give it `text`, `calls`, `error` or `cut`")
        error = self._provider_error(entry["error"], f"{place}/error") if "error" in entry else None
        if error is not None and not error.is_in_stream and {"text", "calls", "finish", "usage", "cut"} & entry.keys():
            raise self._error(
                f"{place}/error", "an error beside a reply", "say `in_stream: true`, or make it a turn of its own"
            )
        if error is not None and "cut" in entry:
            raise self._error(f"{place}/cut", "both `error` and `cut`", "keep one of them")
        calls = self._typed(entry.get("calls", []), f"{place}/calls", list)
        cut = self._cut(entry["cut"], f"{place}/cut") if "cut" in entry else None
        if cut is not None and ((cut.at == "text" and not entry.get("text")) or (cut.at == "arguments" and not calls)):
            raise self._error(
                f"{place}/cut", f"the turn has no {cut.at} to cut", "say `before_reply` or `end`, or add it"
            )
        return ScriptTurn(
            text=self._get(entry, place, "text", str, ""),
            calls=tuple(self._call(call, f"{place}/calls/{index}") for index, call in enumerate(calls)),
            finish=self._choice(entry, place, "finish", FINISHES),
            usage=self._usage(entry["usage"], f"{place}/usage") if "usage" in entry else None,
            when=self._conditions(entry["when"], f"{place}/when") if "when" in entry else (),
            repeat=self._repeat(entry, place),
            error=error,
            cut=cut,
            delay_ms=self._delay(entry, place),
            is_literal=self._get(entry, place, "literal", bool, False),
            line=self._document.where(place).line or 0,
        )

    def _call(self, value: Any, place: str) -> ScriptedCall:
        entry = self._mapping(value, place, _CALL_KEYS)
        if "tool" not in entry:
            raise self._error(place, "a call without `tool`", "name the tool")
        if "args" in entry and "args_raw" in entry:
            raise self._error(f"{place}/args_raw", "both `args` and `args_raw`", "keep one of them")
        tool = self._get(entry, place, "tool", str, "")
        if not tool:
            raise self._error(f"{place}/tool", "a tool without a name", "name the tool")
        args_raw = self._get(entry, place, "args_raw", str, None)
        has_id = entry.get("id", "") is not None
        call_id = self._get(entry, place, "id", str, None) if has_id else None
        if call_id == "":
            raise self._error(f"{place}/id", "an empty id", "leave `id` out to draw one, or say `id: null` for none")
        return ScriptedCall(
            tool_name=tool,
            args=self._typed(entry.get("args", {}), f"{place}/args", dict) if args_raw is None else None,
            args_raw=args_raw,
            call_id=call_id,
            has_id=has_id,
        )

    def _conditions(self, value: Any, place: str) -> tuple[Condition, ...]:
        if isinstance(value, list):
            if not value:
                raise self._error(place, "no condition", "leave `when` out")
            return tuple(self._condition(item, f"{place}/{index}") for index, item in enumerate(value))
        return (self._condition(value, place),)

    def _condition(self, value: Any, place: str) -> Condition:
        entry = self._mapping(value, place, _WHEN_KEYS)
        if not entry:
            raise self._error(place, "an empty condition", f"give it one of {', '.join(_WHEN_KEYS)}")
        status = self._choice(entry, place, "status", get_args(ResultStatus))
        if status == "missing" and "contains" in entry:
            raise self._error(f"{place}/contains", "a missing result contains nothing", "keep `status` or `contains`")
        return Condition(
            status=status,
            tool_name=self._get(entry, place, "tool", str, None),
            contains=self._get(entry, place, "contains", str, None),
            user_contains=self._get(entry, place, "user_contains", str, None),
        )

    def _provider_error(self, value: Any, place: str) -> ProviderError:
        entry = self._mapping(value, place, _ERROR_KEYS)
        status = self._get(entry, place, "status", int, 0)
        if not 400 <= status <= 599:
            raise self._error(
                f"{place}/status", "an error needs a status from 400 to 599", "say for example `status: 429`"
            )
        headers = self._typed(entry.get("headers", {}), f"{place}/headers", dict)
        return ProviderError(
            status=status,
            type=self._get(entry, place, "type", str, None),
            code=self._get(entry, place, "code", str, None),
            message=self._get(entry, place, "message", str, None),
            headers=tuple((name, self._header(name, headers[name], place)) for name in headers),
            is_in_stream=self._get(entry, place, "in_stream", bool, False),
        )

    def _header(self, name: str, value: Any, place: str) -> str:
        where = self._below(f"{place}/headers", name)
        text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        if not isinstance(text, str) or not text.isascii() or not text.isprintable():
            raise self._error(where, "a header that is no printable ASCII text", "quote it")
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise self._error(where, f"{name!r} is no header name", "use letters, digits and hyphens")
        return text

    def _cut(self, value: Any, place: str) -> Cut:
        entry = {"at": value} if isinstance(value, str) else self._mapping(value, place, _CUT_KEYS)
        where = place if isinstance(value, str) else f"{place}/at"
        at: CutPlace | None = self._choice(entry, place, "at", get_args(CutPlace), where)
        if at is None:
            raise self._error(place, "a cut without `at`", f"say where: {', '.join(get_args(CutPlace))}")
        how: CutManner | None = self._choice(entry, place, "how", get_args(CutManner))
        return Cut(at, how or "close")

    def _usage(self, value: Any, place: str) -> TokenUsage:
        entry = self._mapping(value, place, _USAGE_KEYS)
        counts = {key: self._get(entry, place, key, int, 0) for key in _USAGE_KEYS}
        for key, count in counts.items():
            if count < 0:
                raise self._error(f"{place}/{key}", "a negative count", "give 0 or more")
        if counts["cached_tokens"] > counts["input_tokens"]:
            raise self._error(
                f"{place}/cached_tokens", "more cached tokens than input tokens", "cached tokens are input tokens"
            )
        return TokenUsage(**counts)

    def _repeat(self, entry: dict[str, Any], place: str) -> int:
        value = entry.get("repeat", 1)
        if value == "forever":
            return FOREVER
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_REPEAT:
            raise self._error(
                f"{place}/repeat", "`repeat` is a count from 1 or `forever`", "say for example `repeat: 3`"
            )
        return value

    def _delay(self, entry: dict[str, Any], place: str) -> float:
        value = entry.get("delay_ms", 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_DELAY_MS:
            raise self._error(
                f"{place}/delay_ms", f"a delay is 0 to {MAX_DELAY_MS} ms", "say for example `delay_ms: 250`"
            )
        return float(value)

    def _texts(self, entry: dict[str, Any], place: str, key: str) -> tuple[str, ...]:
        texts = self._typed(entry.get(key, []), f"{place}/{key}", list)
        for index, text in enumerate(texts):
            if not self._typed(text, f"{place}/{key}/{index}", str):
                raise self._error(f"{place}/{key}/{index}", "an empty text", "remove it")
        return tuple(texts)

    def _choice(self, entry: dict[str, Any], place: str, key: str, choices: tuple[Any, ...], where: str = "") -> Any:
        value = entry.get(key)
        if key in entry and value not in choices:
            raise self._error(where or f"{place}/{key}", f"{value!r} is no `{key}`", suggest(str(value), choices))
        return value

    def _get(self, entry: dict[str, Any], place: str, key: str, kind: type, default: Any) -> Any:
        return self._typed(entry[key], f"{place}/{key}", kind) if key in entry else default

    def _typed(self, value: Any, place: str, kind: type) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            hint = "quote it" if kind is str and isinstance(value, int | float) else f"give {_KIND_WORDS[kind]}"
            raise self._error(place, f"{_KIND_WORDS[kind]} is needed here", hint)
        return value

    def _mapping(self, value: Any, place: str, keys: tuple[str, ...]) -> dict[str, Any]:
        entry: dict[str, Any] = self._typed(value, place, dict)
        for key in entry:
            if key not in keys:
                raise self._error(self._below(place, key), f"unknown key {key!r}", suggest(key, keys))
        return entry

    def _below(self, place: str, key: str) -> str:
        return f"{place}/{key.replace('~', '~0').replace('/', '~1')}"

    def _error(self, pointer: str, what: str, next_step: str) -> ConfigError:
        return self._document.error(pointer, what, next_step)


def write_script(script: Script) -> str:
    """Return the YAML of a script; reading it gives the same script, but for `path` and lines."""
    top: dict[str, Any] = {"script": script.name}
    if script.description:
        top["description"] = script.description
    if script.seed:
        top["seed"] = script.seed
    if not script.is_strict:
        top["strict"] = False
    if script.error_texts:
        top["error_texts"] = list(script.error_texts)
    if len(script.agents) == 1 and script.agents[0] == AgentScript(MAIN_AGENT, script.agents[0].turns):
        top["turns"] = [_turn_value(turn) for turn in script.agents[0].turns]
    else:
        top["agents"] = {agent.name: _agent_value(agent) for agent in script.agents}
    return yaml.dump(top, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=118)


class _Dumper(yaml.SafeDumper):
    """The safe dumper without aliases; texts that are not one printable line are written with escapes."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Return the node of a text. In the other styles a next line or line separator (U+0085, U+2028) is not kept."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_text)


def _agent_value(agent: AgentScript) -> dict[str, Any]:
    match = _given({"model": agent.model, "system_contains": agent.system_contains, "tools": list(agent.tools) or None})
    return _given({"match": match or None, "turns": [_turn_value(turn) for turn in agent.turns]})


def _turn_value(turn: ScriptTurn) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if turn.when:
        conditions = [
            _given({"status": c.status, "tool": c.tool_name, "contains": c.contains, "user_contains": c.user_contains})
            for c in turn.when
        ]
        entry["when"] = conditions[0] if len(conditions) == 1 else conditions
    if turn.error is not None:
        error = turn.error
        entry["error"] = _given({
            "status": error.status, "type": error.type, "code": error.code, "message": error.message,
            "headers": dict(error.headers) or None, "in_stream": error.is_in_stream or None,
        })  # fmt: skip
    if turn.text or not (turn.calls or turn.error or turn.cut or turn.finish):
        entry["text"] = turn.text
    if turn.calls:
        entry["calls"] = [_call_value(call) for call in turn.calls]
    if turn.usage is not None:
        usage = turn.usage
        entry["usage"] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        if usage.cached_tokens:
            entry["usage"]["cached_tokens"] = usage.cached_tokens
    if turn.cut is not None:
        entry["cut"] = turn.cut.at if turn.cut.how == "close" else {"at": turn.cut.at, "how": turn.cut.how}
    if turn.repeat != 1:
        entry["repeat"] = "forever" if turn.repeat == FOREVER else turn.repeat
    return {
        **entry,
        **_given({"finish": turn.finish, "delay_ms": turn.delay_ms or None, "literal": turn.is_literal or None}),
    }


def _call_value(call: ScriptedCall) -> dict[str, Any]:
    entry: dict[str, Any] = {"tool": call.tool_name}
    if call.args_raw is not None:
        entry["args_raw"] = call.args_raw
    elif call.args:
        entry["args"] = call.args
    if call.call_id is not None or not call.has_id:
        entry["id"] = call.call_id
    return entry


def _given(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value is not None}
