"""What a diff costs as a whole process: a small one against bare Python, long ones against reading and hashing the
bytes.

Rows: two runs of 60 events; 100,000 calls a side with 1 % edits, with and without the sharing of equal arguments;
100,000 equal calls, nothing in common, eight tools only. Exactness of the edits is `bench_exact`'s.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from big_traces import write_pair
from timing import Command, Row

CALLS = 100_000
READ_AND_HASH = (
    "import hashlib,sys\n"
    "a,b=(open(p,'rb').read() for p in sys.argv[1:])\n"
    "hashlib.sha256(a); hashlib.sha256(b)\n"
    "x,y=set(a.split(b'\\n')),set(b.split(b'\\n'))\n"
    "print(len(x-y),len(y-x))\n"
)
CARD_STACK = (
    "import click,jsonlines,yaml,deepdiff,sys\n"
    "a,b=(list(jsonlines.open(p)) for p in sys.argv[1:])\n"
    "deepdiff.DeepDiff(a,b)\n"
)


def rows(folder: Path) -> Iterator[Row]:
    """Yield the rows; inputs are made below `folder`."""
    goldentrace = Path(sys.executable).with_name("goldentrace")
    small = write_pair(folder / "small", 30, "mixed", edits=0.1)
    yield Row(
        "diff of two runs of 60 events", Command([goldentrace, "diff", *small], codes=(0, 2)),
        Command([sys.executable, "-c", "pass"]), "python -c pass", repeat=11, targets={"ratio": 8.0},
    )  # fmt: skip
    yield Row(
        "the same with everything imported at once", Command([sys.executable, "-c", CARD_STACK, *small]),
        Command([sys.executable, "-c", "pass"]), "python -c pass", repeat=5,
    )  # fmt: skip
    mixed = write_pair(folder / "mixed", CALLS, "mixed")
    read = Command([sys.executable, "-c", READ_AND_HASH, *mixed])
    yield Row(
        "100,000 calls a side, 1 % edits", Command([goldentrace, "diff", *mixed], codes=(2,)), read,
        "read, sha256, set difference", repeat=3, targets={"seconds": 2.5, "ratio": 14.0},
    )  # fmt: skip
    plain = Command([goldentrace, "diff", *mixed], codes=(2,))
    for kind, what in (
        ("equal", "100,000 equal calls"),
        ("disjoint", "nothing in common"),
        ("eight", "eight tools only"),
    ):
        pair = write_pair(folder / kind, CALLS, kind)
        yield Row(
            what, Command([goldentrace, "diff", *pair], codes=(2,)), plain, "100,000 calls a side, 1 % edits", repeat=3,
            targets={"ratio": 2.0},
        )  # fmt: skip
