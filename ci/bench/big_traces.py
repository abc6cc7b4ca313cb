"""Two long runs with known edits, in the project's own format, for time, memory and exactness.

kinds: `mixed` (half of the calls recur), `equal` (one call over and over, a stuck loop), `eight` (eight distinct
calls), `disjoint` (nothing in common). The generator says how many inserts and deletes of keys it made at least; plain
code computes the exact least number, so the differ's answer is checked against something that shares nothing with it.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

Call = tuple[str, dict[str, object]]


def write_pair(folder: Path, calls: int, kind: str, *, edits: float = 0.01, seed: int = 7) -> tuple[Path, Path]:
    """Write golden.jsonl and candidate.jsonl below `folder` and return them."""
    rng = random.Random(seed)
    golden = list(_calls(calls, kind, rng))
    candidate = list(_edited(golden, kind, edits, rng))
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "golden.jsonl", folder / "candidate.jsonl"
    for path, steps in zip(paths, (golden, candidate), strict=True):
        _write(path, steps)
    return paths


def _calls(count: int, kind: str, rng: random.Random) -> Iterator[Call]:
    for n in range(count):
        if kind == "equal":
            yield "poll", {"job": "J-1"}
        elif kind == "eight":
            yield f"tool_{rng.randrange(8)}", {}
        elif kind == "mixed" and rng.random() < 0.5:
            yield f"tool_{n % 12}", {"page": rng.randrange(50)}
        else:
            yield f"tool_{rng.randrange(12)}", {"item": f"item-{n}", "page": n % 17, "query": f"status={n % 5}"}


def _edited(golden: list[Call], kind: str, edits: float, rng: random.Random) -> Iterator[Call]:
    for n, (tool, args) in enumerate(golden):
        if kind == "disjoint":
            yield tool + "_other", args
        elif rng.random() >= edits:
            yield tool, args
        else:
            change = rng.choice(["insert", "remove"] if kind == "equal" else ["argument", "insert", "remove", "tool"])
            if change == "argument":
                yield tool, {**args, "page": 1000 + n}
            elif change == "insert":
                yield tool, args
                yield tool, args
            elif change == "tool":
                yield "tool_new", args


def duplicated(folder: Path, calls: int, place: int) -> tuple[Path, Path]:
    """Write a run of distinct calls and the same run with one call doubled."""
    golden: list[Call] = [(f"tool_{n % 12}", {"item": n}) for n in range(calls)]
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "golden.jsonl", folder / "candidate.jsonl"
    _write(paths[0], golden)
    _write(paths[1], [*golden[:place], golden[place - 1], *golden[place:]])
    return paths


def _write(path: Path, steps: list[Call]) -> None:
    with path.open("w") as file:
        start = {"type": "trace_start", "seq": 0, "ts": _clock(0), "format": "goldentrace/1", "trace_id": "t"}
        file.write(json.dumps({**start, "scenario_id": "scale"}) + "\n")
        for n, (tool, args) in enumerate(steps):
            common = {"ts": _clock(n), "turn": n + 1, "call_id": f"call_{n:09x}"}
            call = {"type": "tool_call", "seq": 2 * n + 1, **common, "tool_name": tool, "args": args}
            result = {"type": "tool_result", "seq": 2 * n + 2, **common, "status": "ok", "result": {"n": n % 101}}
            file.write(json.dumps(call) + "\n" + json.dumps(result) + "\n")
        end = {"type": "trace_end", "seq": 2 * len(steps) + 1, "outcome": "success", "stop_reason": "final_answer"}
        file.write(json.dumps({**end, "events": 2 * len(steps) + 1}) + "\n")


def _clock(n: int) -> str:
    ms = n * 5
    day, hour, minute = 1 + ms // 86_400_000, ms // 3_600_000 % 24, ms // 60_000 % 60
    return f"2026-03-{day:02d}T{hour:02d}:{minute:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}000Z"


def least_edits(golden: Path, candidate: Path) -> int:
    """Return the least number of inserted and deleted keys, by Myers' greedy algorithm over (tool, arguments)."""
    left, right = _keys(golden), _keys(candidate)
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    left, right = left[start:], right[start:]
    while left and right and left[-1] == right[-1]:
        left.pop()
        right.pop()
    n, m = len(left), len(right)
    furthest = {1: 0}
    for distance in range(n + m + 1):
        for diagonal in range(-distance, distance + 1, 2):
            if diagonal == -distance or (
                diagonal != distance and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
            ):
                x = furthest[diagonal + 1]
            else:
                x = furthest[diagonal - 1] + 1
            y = x - diagonal
            while x < n and y < m and left[x] == right[y]:
                x, y = x + 1, y + 1
            furthest[diagonal] = x
            if x >= n and y >= m:
                return distance
    return n + m


def _keys(path: Path) -> list[str]:
    keys: list[str] = []
    for line in path.read_text().splitlines():
        event = json.loads(line)
        if event["type"] == "tool_call":
            keys.append(json.dumps([event["tool_name"], event["args"]], sort_keys=True))
    return keys
