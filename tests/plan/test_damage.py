"""Damaged plans, opened in a process of their own: each is refused or answers as before, and none ends the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CASES = 400
CHILD = """
import random, sys
from pathlib import Path
import headgate as hg
from tests.plan.test_file import EVENTS, book

made = book().stream("t", {"a": "bigint", "at": "bigint"}, time="at")
made.add("sequence", "SELECT x.a AS a FROM t AS x NEXT {$2.a > $1.a} t AS y")
events = {"s": EVENTS, "t": [{"a": i % 5, "at": i} for i in range(60)]}
plan, file = made.compile(), Path(sys.argv[2])
plan.save(file)
sound, answers, refused = file.read_bytes(), plan.match(events), 0
for seed in range(int(sys.argv[1])):
    draw, data = random.Random(seed), bytearray(sound)
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        at = draw.randrange(len(data))
        what = draw.random()
        if what < 0.6:
            data[at] ^= 1 << draw.randrange(8)
        elif what < 0.8:
            data[at : at + 8] = draw.randbytes(8)
        elif what < 0.9:
            del data[at : at + draw.randrange(64)]
        else:
            to = draw.randrange(len(data))
            data[at : at + 64] = data[to : to + 64]
    file.write_bytes(data)
    print(seed, file=sys.stderr)
    try:
        opened = hg.Plan.open(file)
    except hg.PlanError:
        refused += 1
    else:
        assert opened.match(events).equals(answers)
print(refused)
"""


def test_a_damaged_plan_is_refused_or_answers_as_before(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(CASES), str(tmp_path / "plan")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert int(ended.stdout) > CASES / 2
