"""The project that a command works on: its configuration, its files, its scenarios by name.

Looked for in the folder the user stands in and nowhere above it: a command never writes into a project that it was not
called in. Must not know any command.
"""

import fnmatch
from pathlib import Path
from typing import Any

import msgspec

from goldentrace.cli.ci import Ci
from goldentrace.cli.options import check_variables
from goldentrace.codec.config import CONFIG_NAME, PYPROJECT_NAME, LoadedConfig, check_name, read_config
from goldentrace.errors import ConfigError, Where
from goldentrace.model.config import Limits, Scenario
from goldentrace.model.pointer import escape
from goldentrace.model.profile import Profile
from goldentrace.sources.bytestream import read_file
from goldentrace.store.layout import Layout
from goldentrace.store.profiles import FOLDER, Profiles


class Chosen(msgspec.Struct, frozen=True):
    """A scenario that a command is about. is_declared: does the configuration have it?"""

    name: str
    scenario: Scenario
    is_declared: bool = True

    @property
    def suite(self) -> str | None:
        return self.scenario.suite


class Project(msgspec.Struct, frozen=True):
    """loaded: the configuration; environment: entry of `environments`, None for none."""

    loaded: LoadedConfig
    layout: Layout
    profiles: Profiles
    ci: Ci
    environment: str | None = None

    @property
    def has_config(self) -> bool:
        return bool(self.loaded.documents)

    def select(self, names: tuple[str, ...]) -> list[Chosen]:
        """Return the scenarios of the given names, suites or patterns, in the configuration's order; all where none is
        given.

        Raises: ConfigError where a name or pattern selects nothing, or there is no scenario at all.
        """
        declared = self.loaded.config.scenarios
        if not declared:
            where = Where(self.loaded.path) if self.loaded.path is not None else None
            goldens = self._golden_files()
            if goldens:
                counted = f"{len(goldens)} golden{'s' if len(goldens) > 1 else ''} under {self.layout.goldens}/"
                command = self.layout.command("diff", goldens[0], "NEW_FILE")
                raise ConfigError(
                    f"no scenario, but {counted}", where=where,
                    next_step=f"compare one with a file: {command}\nor give it a scenario in {CONFIG_NAME}",
                )  # fmt: skip
            raise ConfigError("no scenario: nothing to do", where=where, next_step=self._first_step())
        chosen: set[str] = set()
        for pattern in names:
            found = {name for name, scenario in declared.items() if _is_meant(pattern, name, scenario.suite)}
            if not found:
                raise self.unknown(pattern)
            chosen |= found
        return [Chosen(name, scenario) for name, scenario in declared.items() if not names or name in chosen]

    def _golden_files(self) -> list[str]:
        """The goldens on disk, as people are to read their paths, sorted."""
        folder = self.layout.goldens_folder
        return sorted(self.shown(path) for path in folder.rglob("*.jsonl")) if folder.is_dir() else []

    @property
    def can_accept(self) -> bool:
        """Will a pending golden outlive this command? In CI only where it is kept with --artifacts."""
        return self.ci.reason is None or self.ci.may_write or self.layout.artifacts is not None

    def is_meant(self, pattern: str) -> bool:
        """Does a name, suite or pattern select any scenario?"""
        declared = self.loaded.config.scenarios
        return any(_is_meant(pattern, name, scenario.suite) for name, scenario in declared.items())

    def choose(self, name: str, suite: str | None = None) -> Chosen:
        """Return the scenario of one name, which the configuration need not have. Raises: ConfigError for a bad
        name."""
        scenario = self.loaded.config.scenarios.get(name)
        if scenario is not None:
            return Chosen(name, scenario)
        check_name(name, "scenario")
        if suite is not None:
            check_name(suite, "suite")
        return Chosen(name, Scenario(suite=suite), is_declared=False)

    def unknown(self, name: str) -> ConfigError:
        """Return the error for a name that selects nothing, to be raised."""
        from goldentrace.codec.yaml_document import suggest

        suites = {scenario.suite for scenario in self.loaded.config.scenarios.values() if scenario.suite}
        known = sorted({*self.loaded.config.scenarios, *suites})
        where = Where(self.loaded.path) if self.loaded.path is not None else None
        return ConfigError(
            f"no scenario {name!r}", where=where, next_step=suggest(name, known) if known else self._first_step()
        )

    def _first_step(self) -> str:
        if self.has_config:
            return f"add one under `scenarios:` in {self.loaded.path or PYPROJECT_NAME}"
        above = next((folder for folder in self.layout.folder.parents if (folder / CONFIG_NAME).is_file()), None)
        if above is not None:
            return f"there is a {CONFIG_NAME} in {above}: run the command there, or name it with --config"
        return f"no {CONFIG_NAME} here: `goldentrace init` writes one"

    @property
    def is_profile_asked(self) -> bool:
        """Does an option, or a variable in its place, name the profile?"""
        return (self.loaded.origins or {}).get("/profile", "").startswith(("--", "GOLDENTRACE_OPT_"))

    def profile_name(self, scenario: Scenario | None = None) -> str:
        """Return the profile to record with: an option's, else the scenario's, else the project's."""
        if scenario is not None and scenario.profile is not None and not self.is_profile_asked:
            return scenario.profile
        return self.loaded.config.profile

    def limits(self, scenario: Scenario) -> Limits:
        """Return the limits of a scenario's run."""
        return self.loaded.config.limits_of(scenario, self.environment)

    def shown(self, path: Path) -> str:
        """Return a path as people are to read it."""
        return self.layout.shown(path)


def _is_meant(pattern: str, name: str, suite: str | None) -> bool:
    pattern = pattern.rstrip("/")
    full = f"{suite}/{name}" if suite else name
    return pattern in (name, full, suite) or fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(full, pattern)


def open_project(
    config: str | None, overrides: dict[str, tuple[Any, str]], *, environment: str | None, ci: Ci, artifacts: str | None
) -> Project:
    """Return the project of the folder the user stands in, or of the one that holds `config`.

    overrides: name of a setting -> (value, origin). Raises: ConfigError for a configuration that cannot be used.
    """
    check_variables()
    base = _here()
    file = base / (config or CONFIG_NAME)
    folder = file.parent if config is not None else base
    data = None if file.name == PYPROJECT_NAME else _read(file, is_needed=config is not None)
    toml = _read(folder / PYPROJECT_NAME, is_needed=False)
    layout = Layout(folder, base=base)
    try:
        loaded = read_config(
            None if data is None else (data, layout.shown(file)),
            None if toml is None else (toml, layout.shown(folder / PYPROJECT_NAME)),
        ).overridden(overrides)
    except ConfigError as error:
        raise _of_profile(error) from None
    if environment is not None and environment not in loaded.config.environments:
        from goldentrace.codec.yaml_document import suggest

        known = loaded.config.environments
        step = suggest(environment, known) if known else f"add it under `environments:` in {CONFIG_NAME}"
        raise ConfigError(f"no environment {environment!r}", next_step=step)
    _check_policies(loaded)
    named = [("--config", config), ("--goldens", _value(overrides, "goldens")), ("--artifacts", artifacts)]
    options = tuple(word for name, value in named if value is not None for word in (name, value))
    layout = Layout(folder, loaded.config.goldens, None if artifacts is None else base / artifacts, base, options)
    return Project(loaded, layout, Profiles(folder), ci, environment)


def _value(overrides: dict[str, tuple[Any, str]], name: str) -> str | None:
    return overrides[name][0] if name in overrides else None


def _of_profile(error: ConfigError) -> ConfigError:
    """The error of an unknown key, which says so where the key is one of a profile."""
    key = error.what.removeprefix("unknown key ").strip("'")
    pointer = error.where.pointer if error.where is not None else None
    if pointer not in (f"$.{key}", f"$.tool.goldentrace.{key}") or key not in Profile.__struct_fields__:
        return error
    return ConfigError(
        f"{key!r} is a key of a profile, not of the configuration",
        where=error.where,
        next_step=f"write it to {FOLDER}/NAME@1.yaml, below `name: NAME@1` and `extends: default@1`; "
        "here write `profile: NAME@1`; then record the goldens again: goldentrace record SCENARIO",
    )


def _check_policies(loaded: LoadedConfig) -> None:
    """Refuse a wrong retry policy of a scenario before anything runs. Raises: ConfigError."""
    for name, scenario in loaded.config.scenarios.items():
        if scenario.backoff is not None:
            from goldentrace.match.backoff import Policy

            Policy.from_mapping(scenario.backoff, loaded.where(f"/scenarios/{escape(name)}/backoff"))


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise ConfigError("the folder you are in is gone", next_step="change to a folder that exists") from None


def _read(file: Path, *, is_needed: bool) -> bytes | None:
    try:
        return read_file(file)
    except FileNotFoundError:
        if not is_needed:
            return None
        raise ConfigError("no such file", where=Where(str(file)), next_step="check --config") from None
    except OSError as error:
        raise ConfigError(
            f"cannot be read: {error.strerror}", where=Where(str(file)), next_step="check the file"
        ) from None
