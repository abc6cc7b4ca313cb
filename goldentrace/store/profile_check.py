"""What the types of a profile cannot say: globs, folders, patterns, schemas, codes and options of rules.

Each value is refused at its own place, because a profile that is half understood masks too little or too much and says
nothing. Rules, schemas and policies are imported where a profile has some. This module must not read files.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from goldentrace.codec.patterns import compile_pattern
from goldentrace.codec.yaml_document import show_pointer, suggest
from goldentrace.errors import ConfigError, Where
from goldentrace.model.config import MOST
from goldentrace.model.pointer import escape, glob_problem
from goldentrace.model.profile import Profile, RedactionRule, Tool

_ROOT_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_TAKEN_NAMES: Final = frozenset({"cwd", "home", "tmp", "now", "new", "unknown", "secret"})
"""What a golden writes in angle brackets already."""
_FOLDER: Final = re.compile(r"(?:/|[A-Za-z]:[\\/]|\\\\).*[^/\\].*", re.DOTALL)
"""An absolute folder that is no root: what `paths` can tell from any other slash."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEMPLATE: Final = re.compile(r"(?:[^{}]|\{[^{}]+\})+")
SUPPRESSIONS: Final = "suppressions"
RULE_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "GT1101": {"times": "number"}, "GT1102": {"rounds": "number"}, "GT1201": {"early_ms": "number"},
    "GT1202": {"min_wait_ms": "number"}, "GT1203": {"max_attempts": "number"}, "GT1204": {"max_attempts": "number"},
    "GT1502": {"also": "texts"}, "GT1507": {"fields": "texts"}, "GT1601": {"names": "texts"},
    "GT1602": {"max_bytes": "number"},
}  # fmt: skip
"""What the rules ask a profile for. A test holds this to the rules."""


class Problem(NamedTuple):
    """pointer: JSON Pointer of the value; what: one clause; next_step: what to write instead."""

    pointer: str
    what: str
    next_step: str


def check_profile(profile: Profile, path: str) -> None:
    """Refuse what types cannot say. Raises: ConfigError naming the value by its pointer; it has no line yet."""
    if profile == Profile(name=profile.name):
        return
    for problem in _problems(profile):
        raise ConfigError(
            problem.what, where=Where(path, None, show_pointer(problem.pointer)), next_step=problem.next_step
        )
    _check_policies(profile, path)


def patterns_of(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield (JSON Pointer, text) of every regular expression of a profile."""
    for number, rule in enumerate(profile.redact.rules):
        for kind in ("pattern", "allow"):
            text = getattr(rule, kind)
            if text is not None:
                yield f"/redact/rules/{number}/{kind}", text
    for name, tool in profile.tools.items():
        place = f"/tools/{escape(name)}"
        for kind in ("error_patterns", "terminal_errors"):
            for number, text in enumerate(getattr(tool, kind)):
                yield f"{place}/{kind}/{number}", text
        for kind in ("schema", "output_schema"):
            schema = getattr(tool, kind)
            if schema is not None:
                from goldentrace.codec.json_schema import patterns_in

                for text in patterns_in(schema):
                    yield f"{place}/{kind}", text


def _problems(profile: Profile) -> Iterator[Problem]:
    yield from _glob_problems("/ids", profile.ids, ("keys", "ignore_keys"))
    yield from _glob_problems("/time", profile.time, ("relative",))
    yield from _glob_problems("/arguments", profile.arguments, ("ignore", "keep", "order_free"))
    yield from _path_problems(profile.paths.also)
    name = profile.arguments.key_env
    if name is not None and _VARIABLE.fullmatch(name) is None:
        yield Problem("/arguments/key_env", f"{name!r} is no name of a variable", "write it like GOLDENTRACE_KEY")
    for number, rule in enumerate(profile.redact.rules):
        yield from _redaction_problems(f"/redact/rules/{number}", rule)
    for name, tool in profile.tools.items():
        yield from _tool_problems(f"/tools/{escape(name)}", name, tool)
    yield from _pattern_problems(profile)
    yield from _rule_problems(profile.rules)
    yield from _severity_problems(profile.compare.severities)


def _glob_problems(place: str, section: Any, names: Iterable[str]) -> Iterator[Problem]:
    for name in names:
        for number, glob in enumerate(getattr(section, name)):
            found = glob_problem(glob)
            if found is not None:
                yield Problem(f"{place}/{name}/{number}", *found)


def _path_problems(also: Mapping[str, str]) -> Iterator[Problem]:
    for name, folder in also.items():
        place = f"/paths/also/{escape(name)}"
        if _ROOT_NAME.fullmatch(name) is None:
            yield Problem(place, f"{name!r} is no name of a folder", "use letters, digits, dashes and underscores")
        elif name in _TAKEN_NAMES:
            yield Problem(place, f"<{name}> means something else in a golden", "name the folder otherwise")
        if _FOLDER.fullmatch(folder) is None:
            yield Problem(place, f"{folder!r} is no absolute folder below the root", "write it like /srv/data")


def _redaction_problems(place: str, rule: RedactionRule) -> Iterator[Problem]:
    if not rule.name.strip():
        yield Problem(f"{place}/name", "a rule without a name", "name what it finds: name: customer-number")
    if rule.pattern is None and rule.allow is None:
        yield Problem(
            place, f"the rule {rule.name!r} finds nothing and allows nothing", "add `pattern: …` or `allow: …`"
        )


def _tool_problems(place: str, name: str, tool: Tool) -> Iterator[Problem]:
    if not name:
        yield Problem(place, "a tool without a name", "write the name that the agent calls it by")
    yield from _glob_problems(place, tool, ("ignore", "keep", "order_free"))
    if tool.resource is not None and _TEMPLATE.fullmatch(tool.resource) is None:
        yield Problem(f"{place}/resource", f"{tool.resource!r} is no template", "write it like order:{order_id}")
    if tool.cursor is not None:
        found = glob_problem(tool.cursor)
        if found is not None:
            yield Problem(f"{place}/cursor", *found)
    for kind in ("reconciles", "fallback_for"):
        given = getattr(tool, kind)
        for other in [given] if isinstance(given, str) else given or ():
            if not other or other == name:
                yield Problem(f"{place}/{kind}", f"{other!r} is no other tool", "name the tool that it stands in for")
    yield from _requirement_problems(place, name, tool)
    for kind in ("schema", "output_schema"):
        schema = getattr(tool, kind)
        if schema is not None:
            from goldentrace.rules.schemas import SchemaError, check_schema

            try:
                check_schema(schema)
            except SchemaError as error:
                yield Problem(f"{place}/{kind}", str(error), "correct the schema (JSON Schema, draft 2020-12)")


def _requirement_problems(place: str, name: str, tool: Tool) -> Iterator[Problem]:
    if not tool.requires:
        return
    from goldentrace.rules.gt1505_requires_unmet import requirements

    for number, entry in enumerate(tool.requires):
        try:
            requirements(name, [entry])
        except ConfigError as error:
            yield Problem(f"{place}/requires/{number}", f"{entry!r} is no requirement", error.next_step)


def _pattern_problems(profile: Profile) -> Iterator[Problem]:
    for place, text in patterns_of(profile):
        if not text:
            yield Problem(place, "an empty pattern", "write what it is to match, or take it out")
        try:
            compile_pattern(text)
        except ConfigError as error:
            yield Problem(place, error.what, error.next_step)


def _rule_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    if not given:
        return
    from goldentrace.rules.registry import rules

    known = rules()
    for code, options in given.items():
        place = f"/rules/{escape(code)}"
        if code == SUPPRESSIONS:
            yield from _suppression_problems(place, options)
        elif code not in known:
            yield Problem(place, f"no rule {code!r}", suggest(code, [*known, SUPPRESSIONS]))
        elif not isinstance(options, dict):
            yield Problem(place, f"{code} takes a mapping of options", "write `option: value` lines below it")
        else:
            yield from _option_problems(place, code, options)


def _option_problems(place: str, code: str, options: Mapping[str, Any]) -> Iterator[Problem]:
    kinds = RULE_OPTIONS.get(code, {})
    for name, value in options.items():
        here = f"{place}/{escape(name)}"
        if not kinds:
            yield Problem(here, f"{code} has no options", "take it out")
        elif name not in kinds:
            yield Problem(here, f"{code} has no option {name!r}", suggest(name, kinds))
        elif kinds[name] == "texts":
            if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
                yield Problem(here, f"{value!r} is no list of texts", f"write it like {name}: [first, second]")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST:
            yield Problem(here, f"{value!r} is no number above 0", f"write it like {name}: 3")


def _suppression_problems(place: str, given: Any) -> Iterator[Problem]:
    from goldentrace.rules.acceptance import read_entries
    from goldentrace.rules.registry import rules

    try:
        entries = read_entries([] if given is None else given, f"rules.{SUPPRESSIONS}", "suppression of")
    except ConfigError as error:
        yield Problem(place, error.what, error.next_step)
        return
    for number, entry in enumerate(entries):
        if entry.code not in rules():
            yield Problem(f"{place}/{number}/code", f"no rule {entry.code!r}", suggest(entry.code, rules()))


def _severity_problems(severities: Mapping[str, str]) -> Iterator[Problem]:
    if not severities:
        return
    from goldentrace.diff.codes import CODES
    from goldentrace.rules.registry import rules

    for code in severities:
        if code not in CODES and code not in (known := rules()):
            yield Problem(
                f"/compare/severities/{escape(code)}", f"no change or rule has the code {code!r}",
                suggest(code, [*CODES, *known]),
            )  # fmt: skip


def _check_policies(profile: Profile, path: str) -> None:
    policies = {"$.backoff": profile.backoff}
    policies |= {
        f"{show_pointer(f'/tools/{escape(name)}')}.backoff": tool.backoff or {} for name, tool in profile.tools.items()
    }
    for place, policy in policies.items():
        if policy:
            from goldentrace.match.backoff import Policy

            Policy.from_mapping(policy, Where(path, None, place))
