"""Whole runs as people report them: all that is wrong is found, nothing else, each once."""

import pytest

from goldentrace.errors import ConfigError
from goldentrace.model.finding import LintResult
from goldentrace.model.profile import Redact
from goldentrace.normalize.pipeline import normalize
from goldentrace.normalize.redact import Redactor
from goldentrace.rules.checklist import answers, first_broken
from goldentrace.rules.gt1901_secret_in_trace import _Search
from goldentrace.rules.registry import run_rules
from tests.rules.dsl import profile_of, trace_of
from tests.traces import Run

SLOPPY = [
    "user summarise config.json and notes.txt and mail it to ann",
    "turn", "read config.json -> A", "read config.json -> A",
    "turn", "read notes.txt -> N",
    "turn", "read config.json -> A",
    "turn", "search q=ann -> []",
    "turn", "search q=ann -> []",
    "turn", "send_email to=ann text=hi -> sent",
    "turn", "read notes.txt -> N",
    "turn", "send_email to=ann text=hi -> sent",
]  # fmt: skip
CLEAN = [
    "user summarise config.json and notes.txt and mail it to ann",
    "turn", "read config.json -> A", "also read notes.txt -> N",
    "turn", "search q=ann -> []",
    "turn", "send_email to=ann text=hi -> sent",
]  # fmt: skip
TOOLS = {"search": {"access": "read"}}


def lint(trace: list[str], **case: object) -> LintResult:
    told = {"trace": trace, "tools": TOOLS, **case}
    recorded, profile = trace_of(told), profile_of(told)
    return run_rules(recorded, normalize(recorded, profile, "h:case"), profile)


def said(result: LintResult) -> list[tuple[str, str, str]]:
    return [(f.code, f.labels[0], f.labels[-1]) for f in result.findings]


def test_nine_sloppy_calls_give_each_defect_once() -> None:
    assert said(lint(SLOPPY)) == [
        ("GT1001", "read#1", "read#2"),
        ("GT1003", "read#1", "read#4"),
        ("GT1003", "search#1", "search#2"),
        ("GT1302", "send_email#1", "send_email#2"),
    ]


def test_a_read_after_a_write_of_unknown_resource_is_not_held_against_the_run() -> None:
    assert not [f for f in lint(SLOPPY).findings if f.labels[-1] == "read#5"]


def test_the_clean_twin_is_clean() -> None:
    assert said(lint(CLEAN)) == []


def test_seventy_six_pairs_of_read_and_edit_are_clean() -> None:
    trace = []
    for number in range(76):
        trace += ["turn", f"read main.py -> V{number}", f"write main.py patch={number} -> ok"]
    assert said(lint(trace)) == []


def test_seventy_six_reads_between_edits_that_did_nothing_are_clean_too() -> None:
    trace = []
    for number in range(76):
        trace += ["turn", "read main.py -> V", f"write main.py patch={number} -> ok"]
    assert said(lint(trace)) == []


def test_thirty_slices_of_one_file_are_clean() -> None:
    trace = [item for n in range(30) for item in ("turn", f"read big.txt offset={n * 100} limit=100 -> S{n}")]
    assert said(lint(trace)) == []


def test_the_checklist_names_the_first_broken_boundary() -> None:
    found = answers(lint(["turn carries", "read a -> A", "turn carries", "read a -> A", "turn carries c2"]))
    first = first_broken(found)
    assert first is not None
    assert first.codes == ("GT1406",)
    assert [answer.state for answer in found if "GT1003" in answer.codes] == ["no"], "what follows from it is shown too"


def test_the_checklist_of_a_clean_run_has_no_broken_boundary() -> None:
    assert first_broken(answers(lint(CLEAN))) is None


def test_only_rules_that_run_claim_repeats() -> None:
    recorded, profile = trace_of({"trace": ["turn", "read a -> A", "read a -> A"]}), profile_of({})
    normal = normalize(recorded, profile, "h:case")
    assert [f.code for f in run_rules(recorded, normal, profile, select=["GT1004"]).findings] == ["GT1004"]


def test_secrets_are_found_in_long_texts_as_in_short_ones() -> None:
    """The rule looks only where a mark stands; what it asks the redactor about must find what the whole text would."""
    samples = (
        "sk-abcdefghijklmnopqrstuvwx", "rk_live_abcdefghijklmnop12", "ghp_" + "a1" * 18, "github_pat_" + "a1" * 15,
        "glpat-" + "a1" * 12, "AKIAABCDEFGHIJKLMNOP", "AIza" + "a1B" * 11 + "xy", "xoxb-1234567890-ab", "hf_" + "a1" * 17,
        "lsv2_pt_" + "a1" * 18, "SG." + "a1" * 10 + "." + "b2" * 10, "pypi-" + "a1" * 30,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "Authorization: Basic dXNlcjpwYXNzd29yZDE=", "Bearer abcdefghijklmnop1",
        "Cookie: session=abcdef", "X-Api-Key: abcdef123456", "postgres://user:hunter2@db/x",
        "-----BEGIN RSA PRIVATE KEY-----",
    )  # fmt: skip
    redactor, search = Redactor(), _Search(Redact())
    for secret in samples:
        assert redactor.find(secret), secret
        text = "a line of prose\n" * 40 + f'{{"x": "{secret}"}}\n' + "and more prose\n" * 40
        wanted = sorted({token.rule for _, _, token in redactor.find(text)})
        assert sorted({rule for _, rule in search.secrets(text.encode())}) == wanted, secret


def test_a_secret_in_a_url_is_found_where_json_escapes_its_slashes() -> None:
    search = _Search(Redact())
    plain, escaped = '{"db": "postgres://ann:hunter2@db/x"}', r'{"db": "postgres:\/\/ann:hunter2@db\/x"}'
    assert search.secrets(escaped.encode()) == search.secrets(plain.encode()) == [("/db", "redact/url-password")]


def test_results_of_each_attempt_of_one_id_are_no_duplicates() -> None:
    """A hedged call has two attempts under way; the result of the first may come first."""
    run = Run().turn()
    run.call("read", {"path": "a"}, status=None, id="c1", attempt=1)
    run.call("read", {"path": "a"}, status=None, id="c1", attempt=2, origin="harness")
    run.result("c1", "A", attempt=1).result("c1", "A", attempt=2)
    trace, profile = run.end(), profile_of({})
    said = run_rules(trace, normalize(trace, profile, "h:case"), profile, select=["GT1401", "GT1402", "GT1403"])
    assert said.findings == []
    assert said.checked == ("GT1401", "GT1402", "GT1403")


def test_a_selection_that_names_no_rule_is_refused() -> None:
    recorded, profile = trace_of({"trace": ["turn", "read a -> A"]}), profile_of({})
    with pytest.raises(ConfigError, match="no rule 'GT77'"):
        run_rules(recorded, normalize(recorded, profile, "h:case"), profile, select=["GT77"])
