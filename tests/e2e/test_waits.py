"""The published table of waits through the command line: the policy in the golden's header, two files, one verdict."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from goldentrace.codec.golden import encode_golden
from goldentrace.codec.profile import profile_hash
from goldentrace.codec.trace import encode_event
from goldentrace.diff.differ import as_golden
from goldentrace.model.profile import Profile
from goldentrace.model.trace import Trace
from tests.conftest import Cli
from tests.traces import Run, normal

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parents[1] / "match" / "waits.yaml").read_text("utf-8"))
HASH = profile_hash(Profile(name="default@1"))
SPECIAL = {"recorded_runs_ms", "owed_is_date", "deadline_ms"}
"""What a trace of one run cannot hold: further runs, the form of a header, what was left of a deadline."""


def is_plain(case: dict[str, Any]) -> bool:
    """Can runs hold it, and do the two differ in waits alone? Other attempts or decisions are changes of their own."""
    golden, candidate = case["golden"], case["candidate"]
    is_alike = all(
        shape(golden.get(key)) == shape(candidate.get(key))
        for key in ("gaps_ms", "delays_ms", "origins", "after_model_turn")
    )
    return is_alike and not SPECIAL & {*case, *golden, *candidate}


def shape(value: Any) -> Any:
    """How many there are, and of waits which are stated; of origins which."""
    if isinstance(value, list):
        return [item if isinstance(item, str) else None for item in value]
    return value


def run_of(side: dict[str, Any]) -> Trace:
    """One operation with these waits between its attempts."""
    gaps = side["gaps_ms"]
    count = len(gaps)
    owed, delays = side.get("owed_ms", [None] * count), side.get("delays_ms", [None] * count)
    origins = side.get("origins", ["harness"] * count)
    run, now = Run().at(0.0), 0.0
    run.turn()
    run.call("poll", {}, status=None, id="c1")
    for n in range(count + 1):
        call_id = f"c{n + 1}"
        run.at(now if n == count or gaps[n] is not None else None)
        status: dict[str, Any] = {"status": "ok"} if n == count else {"status": "error", "owed_ms": owed[n]}
        run.result(call_id, None, **status)
        if n == count:
            break
        if delays[n] is not None:
            run.decide("retry", call_id, delay_ms=delays[n])
        run.at(now)
        if side.get("after_model_turn"):
            run.turn()
        now += (gaps[n] or 0) / 1000
        run.at(now).call(
            "poll", {}, status=None, id=f"c{n + 2}", op_id="c1", attempt=n + 2, origin=origins[n]
        )  # fmt: skip
    return run.end()


@pytest.mark.parametrize("case", [case for case in CASES if is_plain(case)], ids=lambda case: case["name"])
def test_a_case_of_the_table(case: dict[str, Any], cli: Cli, tmp_path: Path) -> None:
    profile = Profile(name="default@1")
    golden_run, candidate_run = run_of(case["golden"]), run_of(case["candidate"])
    golden = as_golden(normal(golden_run, profile), profile, backoff=case["policy"])
    data = encode_golden(golden).replace(b"h:test", HASH.encode())
    (tmp_path / "golden.jsonl").write_bytes(data)
    (tmp_path / "candidate.jsonl").write_bytes(b"".join(encode_event(event) for event in candidate_run.events))
    done = cli("diff", "golden.jsonl", "candidate.jsonl", "--output-format", "json", cwd=tmp_path)
    severities = case.get("severity", [None] * len(case["expected"]))
    codes = [code for code in case["expected"] if code.startswith("GT")]
    errors = [c for c, s in zip(case["expected"], severities, strict=True) if c.startswith("GT") and s is None]
    wanted = 3 if "no-verdict" in severities else 2 if errors else 0
    assert done.code == wanted, done.stdout + done.stderr
    found = [finding["rule"] for finding in json.loads(done.stdout)["traces"][0]["findings"]]
    assert sorted(set(found)) == sorted(set(codes))
