"""The configuration: `goldentrace.yaml` and `[tool.goldentrace]` to `Config`, with where each value came from.

Precedence, highest first: options, GOLDENTRACE_OPT_NAME, goldentrace.yaml, pyproject.toml; options and the environment
are applied by whoever knows them (`overridden`). Texts are passed in; this module must not look for files.
"""

import shlex
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from goldentrace.codec.yaml_document import YamlDocument, merged, read_yaml, show_pointer
from goldentrace.errors import ConfigError, Where
from goldentrace.model.config import Config, Limits
from goldentrace.model.pointer import escape

CONFIG_NAME: Final = "goldentrace.yaml"
PYPROJECT_NAME: Final = "pyproject.toml"
PYPROJECT_TABLE: Final = "/tool/goldentrace"
MAX_NAME_BYTES: Final = 120
"""Of a scenario or suite; 255 is what file systems take, the rest is for what is added to the name."""

_NAMING: Final = {"suite": "suite", "faults": "fault plan", "model": "script", "profile": "profile"}
"""Keys of a scenario whose text names something."""
_NOT_IN_NAMES: Final = frozenset('<>:"/\\|?*[]')
"""What a file system forbids (Windows, the strictest), and what selects scenarios by pattern."""
_DEVICES: Final = frozenset(
    {"con", "prn", "aux", "nul", *(f"com{n}" for n in range(1, 10)), *(f"lpt{n}" for n in range(1, 10))}
)


class LoadedConfig(msgspec.Struct, frozen=True):
    """A configuration and where it comes from.

    path: goldentrace.yaml as shown, None where there is none; origins: JSON Pointer of a value -> `FILE:LINE`, the
    variable or the option; documents: the files, for errors about values that are only found wrong later.
    """

    config: Config
    path: str | None = None
    origins: dict[str, str] | None = None
    documents: tuple[YamlDocument, ...] = ()

    def where(self, pointer: str) -> Where | None:
        """Return the place of a value, None where no file holds it."""
        for document in self.documents:
            for at in (pointer, PYPROJECT_TABLE + pointer):
                if at in document.lines:
                    return document.where(at)
        return self.documents[0].where(pointer) if self.documents else None

    def overridden(self, values: dict[str, tuple[Any, str]]) -> "LoadedConfig":
        """Return the configuration with top-level values replaced: name -> (value, origin)."""
        if not values:
            return self
        changed = msgspec.structs.replace(self.config, **{name: value for name, (value, _) in values.items()})
        origins = {**(self.origins or {}), **{f"/{name}": origin for name, (_, origin) in values.items()}}
        loaded = msgspec.structs.replace(self, config=changed, origins=origins)
        _check_goldens(loaded)
        return loaded


def read_config(yaml: tuple[bytes, str] | None = None, pyproject: tuple[bytes, str] | None = None) -> LoadedConfig:
    """Return the configuration of a project from the bytes and paths of its files.

    Raises: ConfigError naming file, line and pointer for what is not YAML or TOML, an unknown key (with the nearest
    known one), a wrong value, a scenario name that is no file name or meets another one, a path that leaves the
    project.
    """
    documents: list[tuple[YamlDocument, str]] = []
    if yaml is not None:
        documents.append((read_yaml(*yaml), ""))
    if pyproject is not None:
        table = _read_pyproject(*pyproject)
        if table is not None:
            documents.append((table, PYPROJECT_TABLE))
    whole: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for document, root in reversed(documents):
        value = _at(document.value, root)
        if value is None:
            continue
        document.convert(Config, value=value, pointer=root)
        whole = merged(whole, value)
        for pointer in _leaves(value, ""):
            origins[pointer] = str(document.where(root + pointer)._replace(pointer=None))
    loaded = LoadedConfig(
        msgspec.convert(whole, Config),
        yaml[1] if yaml is not None else None,
        origins,
        tuple(document for document, _ in documents),
    )
    _check(loaded)
    return loaded


def _read_pyproject(data: bytes, path: str) -> YamlDocument | None:
    """The table [tool.goldentrace] with the lines of its keys, None where the file has none."""
    if b"goldentrace" not in data:
        return None
    import tomllib

    try:
        text = data.decode("utf-8")
        whole = tomllib.loads(text)
    except UnicodeDecodeError:
        raise ConfigError("not UTF-8", where=Where(path), next_step="save the file as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"not TOML: {error}", where=Where(path), next_step="correct the line") from None
    tool = whole.get("tool")
    table = tool.get("goldentrace") if isinstance(tool, dict) else None
    if table is None:
        return None
    return YamlDocument({"tool": {"goldentrace": table}}, path, dict(_toml_lines(text, table)))


def _toml_lines(text: str, table: Any) -> Iterator[tuple[str, int]]:
    """Where the keys of the table stand, as well as a reader without marks can tell: below their nearest header."""
    lines = text.splitlines()
    header = next((n for n, line in enumerate(lines, 1) if line.lstrip().startswith("[tool.goldentrace")), 1)
    yield PYPROJECT_TABLE, header
    at = {"": header}
    for pointer in _pointers(table, ""):
        key = pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        start = at.get(pointer.rpartition("/")[0], header)
        forms = (key, f'"{key}"', f"'{key}'")
        for number, line in enumerate(lines[start - 1 :], start):
            word = line.strip().strip("[]")
            last = word.rpartition(".")[2] if line.lstrip().startswith("[") else word.partition("=")[0].strip()
            if last in forms or any(f"{form} =" in line or f"{form}=" in line for form in forms):
                at[pointer] = number
                yield PYPROJECT_TABLE + pointer, number
                break


def _pointers(value: Any, pointer: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            place = f"{pointer}/{escape(str(key))}"
            yield place
            yield from _pointers(item, place)


def _leaves(value: Any, pointer: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{pointer}/{escape(str(key))}")
    else:
        yield pointer


def _at(value: Any, pointer: str) -> Any:
    for key in pointer.split("/")[1:]:
        value = value[key]
    return value


# -- what a type cannot say ------------------------------------------------------------------------------------------


def _check(loaded: LoadedConfig) -> None:
    _check_goldens(loaded)
    for pointer, text, what in _texts(loaded.config):
        if not text.strip() or "\0" in text:
            raise ConfigError(
                f"{text!r} is no {what}", where=loaded.where(pointer), next_step=f"name a {what}, or take the key out"
            )
    _check_names(loaded)


def _texts(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield (JSON Pointer, text, what it names) of every text that must name something."""
    yield "/profile", config.profile, "profile"
    yield from _tools_of(config.limits, "/limits")
    for name, environment in config.environments.items():
        place = f"/environments/{escape(name)}"
        yield place, name, "name of an environment"
        yield from _tools_of(environment.limits, f"{place}/limits")
    for name, scenario in config.scenarios.items():
        place = f"/scenarios/{escape(name)}"
        for key, what in _NAMING.items():
            text = getattr(scenario, key)
            if text is not None:
                yield f"{place}/{key}", text, what
        yield from _tools_of(scenario.limits, f"{place}/limits")
        for tool in scenario.budgets.tools:
            yield f"{place}/budgets/tools/{escape(tool)}", tool, "name of a tool"


def _tools_of(limits: Limits, place: str) -> Iterator[tuple[str, str, str]]:
    for tool in limits.per_tool:
        yield f"{place}/per_tool/{escape(tool)}", tool, "name of a tool"


def _check_names(loaded: LoadedConfig) -> None:
    seen: dict[tuple[str, str], str] = {}
    suites: dict[str, str] = {}
    for name, scenario in loaded.config.scenarios.items():
        at = f"/scenarios/{escape(name)}"
        check_name(name, "scenario", loaded.where(at))
        suite = scenario.suite or ""
        if scenario.suite is not None:
            check_name(suite, "suite", loaded.where(f"{at}/suite"))
            _check_twin(suites, suite.casefold(), suite, "suite", loaded.where(f"{at}/suite"))
        _check_twin(seen, (suite.casefold(), name.casefold()), name, "scenario", loaded.where(at))
        _check_command(scenario.command, loaded.where(f"{at}/command"))
        for variable in scenario.env:
            _check_variable(variable, loaded.where(f"{at}/env/{escape(variable)}"))
    for name, environment in loaded.config.environments.items():
        for variable in environment.env:
            _check_variable(variable, loaded.where(f"/environments/{escape(name)}/env/{escape(variable)}"))


def _check_twin(seen: dict[Any, str], key: Any, name: str, kind: str, where: Where | None) -> None:
    other = seen.setdefault(key, name)
    if other != name:
        raise ConfigError(
            f"{kind} {name!r} and {kind} {other!r} are one file where case does not count", where=where,
            next_step="rename one of them",
        )  # fmt: skip


def _check_command(command: str | list[str] | None, where: Where | None) -> None:
    if command is None:
        return
    try:
        words = split_command(command)
    except ValueError as error:
        raise ConfigError(f"the command cannot be split: {error}", where=where, next_step="close the quotes") from None
    if not words:
        raise ConfigError("the command is empty", where=where, next_step="name the program that runs the agent")


def split_command(command: str | list[str]) -> list[str]:
    """Return the words of a command; text is split as a shell would, but no shell ever runs it. Raises: ValueError."""
    return shlex.split(command) if isinstance(command, str) else list(command)


def _check_variable(name: str, where: Where | None) -> None:
    if not name or "=" in name or "\0" in name:
        raise ConfigError(f"{name!r} is no name of an environment variable", where=where, next_step="rename it")


def _check_goldens(loaded: LoadedConfig) -> None:
    check_inside(loaded.config.goldens, "goldens", loaded.where("/goldens"))


def check_inside(path: str, what: str, where: Where | None) -> None:
    """Refuse a path that is not in the project folder. Raises: ConfigError."""
    parts = PurePosixPath(path).parts
    if path.startswith(("/", "~", "\\")) or ".." in parts or not parts or "\0" in path or parts == (".",):
        raise ConfigError(
            f"{what}: {path!r} is no folder inside the project", where=where,
            next_step=f"name a folder below the one that holds {CONFIG_NAME}",
        )  # fmt: skip


def check_name(name: str, kind: str, where: Where | None = None) -> None:
    """Refuse a scenario or suite name that is not a file name everywhere, as it stands. Raises: ConfigError."""
    problem = _name_problem(name)
    if problem is not None:
        raise ConfigError(
            f"{kind} name {name!r} {problem}", where=where,
            next_step="use letters, digits, dots, dashes, underscores: the name is that of the golden's file",
        )  # fmt: skip


def _name_problem(name: str) -> str | None:
    if not name:
        return "is empty"
    bad = sorted(set(name) & _NOT_IN_NAMES)
    if bad:
        return f"holds {bad[0]!r}"
    if not name.isprintable() or unicodedata.normalize("NFC", name) != name:
        return "holds characters that file systems change or hide"
    if name[0] in ".-~" or name[-1] in ". ":
        return f"begins or ends with {name[0] if name[0] in '.-~' else name[-1]!r}"
    if name[0] == " ":
        return "begins with a space"
    if name.partition(".")[0].rstrip().casefold() in _DEVICES:
        return "is a device name on Windows"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"is longer than {MAX_NAME_BYTES} bytes"
    return None


def settings(loaded: LoadedConfig) -> Iterable[tuple[str, Any, str]]:
    """Yield (shown pointer without `$.`, value, origin) of every setting in effect, defaults included, in order."""
    values = msgspec.to_builtins(loaded.config)
    defaults = {name: msgspec.to_builtins(value) for name, value in _defaults().items()}
    origins = loaded.origins or {}
    for name in Config.__struct_fields__:
        if name not in values:
            yield name, defaults[name], "default"
            continue
        for pointer in _leaves(values[name], f"/{escape(name)}"):
            value = _value_at(values, pointer)
            yield show_pointer(pointer)[2:], value, origins.get(pointer, origins.get(f"/{name}", "default"))


def _defaults() -> dict[str, Any]:
    empty = Config()
    return {name: getattr(empty, name) for name in Config.__struct_fields__}


def _value_at(values: Any, pointer: str) -> Any:
    for key in pointer.split("/")[1:]:
        values = values[key.replace("~1", "/").replace("~0", "~")]
    return values
