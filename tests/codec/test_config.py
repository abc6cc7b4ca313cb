"""The configuration as text: where values come from, what is refused, limits that stack."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldentrace.codec.config import check_name, read_config, settings
from goldentrace.errors import ConfigError
from goldentrace.model.config import Config, Limits, Scenario, ToolLimits
from tests.cli.refusal import error_of

FULL = b"""
goldens: golden
profile: shop
limits: {max_model_turns: 10, max_tool_calls: 20, max_executions: 60, max_attempts: 3, max_wall_ms: 30000, max_writes: 3,
  max_destructive: 1, max_tokens: null, max_cost_usd: 0, per_tool: {default: {max_elapsed_ms: 10000}}}
environments: {staging: {limits: {max_wall_ms: 300000, max_cost_usd: 5}, runs: 100}}
record: {results: hash, messages: drop}
scenarios:
  429-then-success:
    suite: retries
    description: waits out Retry-After, charges once
    command: python agent.py --task 'charge it'
    faults: faults/429-then-success.yaml
    model: scripts/charge.yaml
    seed: 7
    env: {PAYMENTS_REGION: eu}
    backoff: {policy: openai}
    budgets: {tool_calls: 5, tools: {search: 1}}
"""


def refused(text: str, pyproject: str | None = None) -> ConfigError:
    toml = None if pyproject is None else (pyproject.encode(), "pyproject.toml")
    with pytest.raises(ConfigError) as caught:
        read_config((text.encode(), "goldentrace.yaml"), toml)
    return caught.value


def test_every_key_is_read() -> None:
    config = read_config((FULL, "goldentrace.yaml")).config
    scenario = config.scenarios["429-then-success"]
    assert (config.goldens, config.profile, config.record.results) == ("golden", "shop", "hash")
    assert (scenario.suite, scenario.seed, scenario.budgets.tools) == ("retries", 7, {"search": 1})
    assert scenario.backoff == {"policy": "openai"}


def test_nothing_is_a_configuration() -> None:
    assert read_config().config == Config()
    assert read_config((b"", "goldentrace.yaml"), (b"[project]\n", "pyproject.toml")).config == Config()


def test_yaml_goes_before_pyproject_key_by_key() -> None:
    yaml = b"profile: mine\nscenarios: {a: {seed: 1}}\n"
    toml = b'[tool.goldentrace]\nprofile = "theirs"\ngoldens = "g"\n[tool.goldentrace.scenarios.a]\nseed = 2\ncommand = "x"\n'
    loaded = read_config((yaml, "goldentrace.yaml"), (toml, "pyproject.toml"))
    assert (loaded.config.profile, loaded.config.goldens) == ("mine", "g")
    assert (loaded.config.scenarios["a"].seed, loaded.config.scenarios["a"].command) == (1, "x")
    origins = {name: origin for name, _, origin in settings(loaded)}
    assert origins["profile"] == "goldentrace.yaml:1"
    assert origins["goldens"] == "pyproject.toml:3"
    assert origins["scenarios.a.seed"] == "goldentrace.yaml:2"
    assert origins["scenarios.a.command"] == "pyproject.toml:6"
    assert origins["jobs"] == "default"


def test_what_overrides_is_named() -> None:
    loaded = read_config((b"profile: mine\n", "goldentrace.yaml")).overridden({"profile": ("asked", "--profile")})
    assert ("profile", "asked", "--profile") in list(settings(loaded))
    with pytest.raises(ConfigError, match="inside the project"):
        loaded.overridden({"goldens": ("/etc", "--goldens")})


def test_a_wrong_pyproject() -> None:
    assert refused("", "[tool.goldentrace]\nlimts = 1\n").next_step == "did you mean limits?"
    assert "not TOML" in refused("", "[tool.goldentrace\n").what
    assert "must be a mapping" in refused("", "[tool]\ngoldentrace = 3\n").what


@pytest.mark.parametrize("path", ["/abs", "..", "a/../..", "~/x", ".", "", "\\\\x"])
def test_goldens_stay_inside_the_project(path: str) -> None:
    assert "inside the project" in refused(f"goldens: {path!r}\n").what


@pytest.mark.parametrize("name", ["a", "429-then-success", "a b", "größe", "a.b_c+d", "日本", "x" * 120])
def test_names_that_are_files_everywhere(name: str) -> None:
    check_name(name, "scenario")


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".hidden", "-x", "a/b", "a\\b", "a\0b", "a\nb", "a:b", "a*b", "a?", "[a]", "a<b", 'a"b', "a|b", "a.", "a ",
     " a", "con", "NUL.txt", "Com1", "lpt9.x", "~a", "x" * 121, "é" * 61, "e\u0301", "a\u202eb", "a\u200bb"],
)  # fmt: skip
def test_names_that_are_no_files_somewhere(name: str) -> None:
    with pytest.raises(ConfigError):
        check_name(name, "scenario")


@given(st.text(min_size=1, max_size=30))
def test_a_name_that_passes_is_its_own_file_name(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    try:
        check_name(name, "scenario")
    except ConfigError:
        return
    folder = tmp_path_factory.mktemp("names")
    (folder / f"{name}.jsonl").write_text("")
    assert [path.name for path in folder.iterdir()] == [f"{name}.jsonl"]
    assert Path(f"{name}.jsonl").parts == (f"{name}.jsonl",)


def test_names_that_meet_where_case_does_not_count() -> None:
    assert "one file" in refused("scenarios: {a: {}, A: {}}").what
    assert "one file" in refused("scenarios: {straße: {}, STRASSE: {}}").what
    assert "suite" in refused("scenarios: {a: {suite: x}, b: {suite: X}}").what
    read_config((b"scenarios: {a: {suite: x}, A: {suite: y}}", "goldentrace.yaml"))


def test_commands_are_split_without_a_shell() -> None:
    assert "cannot be split" in refused('scenarios: {a: {command: "x \'y"}}').what
    assert "is empty" in refused("scenarios: {a: {command: '  '}}").what
    assert "is empty" in refused("scenarios: {a: {command: []}}").what


def test_variables_have_names() -> None:
    assert "environment variable" in refused("scenarios: {a: {env: {'A=B': c}}}").what
    assert "environment variable" in refused("environments: {s: {env: {'': c}}}").what


def test_limits_stack_and_null_is_no_limit() -> None:
    text = b"""
limits: {max_tool_calls: 20, max_wall_ms: 1000, per_tool: {default: {max_calls: 5}, t: {max_calls: 3, max_elapsed_ms: 9}}}
environments: {staging: {limits: {max_wall_ms: 5000}}}
scenarios: {a: {limits: {max_tool_calls: null, per_tool: {t: {max_calls: 0}}}}, b: {}}
"""
    config = read_config((text, "goldentrace.yaml")).config
    limits = config.limits_of(config.scenarios["a"], "staging")
    assert (limits.value("max_tool_calls"), limits.value("max_wall_ms"), limits.value("max_tokens")) == (
        None,
        5000,
        None,
    )
    assert limits.per_tool == {"default": ToolLimits(max_calls=5), "t": ToolLimits(max_calls=0, max_elapsed_ms=9)}
    assert config.limits_of(config.scenarios["b"]).value("max_wall_ms") == 1000


def test_a_run_without_limits_still_ends() -> None:
    assert Config().limits_of(Scenario()).value("max_wall_ms") == 600_000
    assert Config(limits=Limits(max_wall_ms=None)).limits_of(Scenario()).value("max_wall_ms") is None


def test_written_null_reaches_the_recorder() -> None:
    assert msgspec.json.encode(Limits(max_tokens=None, max_writes=0)) == b'{"max_writes":0,"max_tokens":null}'


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_are_a_configuration_or_an_error_of_ours(yaml: bytes, toml: bytes) -> None:
    error = error_of(
        lambda: read_config((yaml, "goldentrace.yaml"), (b"[tool.goldentrace]\n" + toml, "pyproject.toml"))
    )
    assert error is None or error.where is not None
