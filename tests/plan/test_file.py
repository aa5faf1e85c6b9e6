"""Plans as files: what is written is read back, mapped, and what is no plan is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from headgate import Plan, PlanError, Subscriptions
from headgate.plan.file import MAGIC

EVENTS = [{"x": i % 7, "name": f"n{i % 5}", "tags": ["a", "b"][: i % 3]} for i in range(200)]


def book() -> Subscriptions:
    made = Subscriptions().stream("s", {"x": "bigint", "name": "string", "tags": "array<string>"})
    texts = ["x = 3", "name LIKE '%3' OR x > 5", "name CONTAINS 'n' AND NOT x IN (1, 2)", "tags = 'b'", "x + 1 > 5"]
    for i, text in enumerate(texts * 4):
        made.add(f"q{i}", text, missing=("null", "strict", "default", "total")[i % 4], labels={"n": str(i)})
    return made


def test_a_saved_plan_matches_as_before(tmp_path: Path) -> None:
    made = book()
    made.compile()
    plan = made.remove("q3").add("late", "x = 0").compile()
    plan.save(tmp_path / "p")
    assert Plan.open(tmp_path / "p").match(EVENTS).equals(plan.match(EVENTS))
    assert Plan.open(tmp_path / "p").fingerprint == plan.fingerprint


def test_another_process_gets_the_same_ids(tmp_path: Path) -> None:
    plan = book().compile()
    plan.save(tmp_path / "p")
    code = (
        "import sys, headgate as hg; "
        "print(hg.Plan.open(sys.argv[1]).match([{'x': 3, 'name': 'n3'}], errors='collect')[0].column('id').to_pylist())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "p")], capture_output=True, text=True, check=True)
    mine = plan.match([{"x": 3, "name": "n3"}], errors="collect")[0].column("id").to_pylist()
    assert done.stdout.strip() == str(mine)


def test_a_file_that_is_no_plan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"PAR1 something")
    with pytest.raises(PlanError, match="is no plan"):
        Plan.open(tmp_path / "p")
    with pytest.raises(PlanError, match="cannot open the plan"):
        Plan.open(tmp_path / "absent")


def test_a_plan_of_another_format_is_refused(tmp_path: Path) -> None:
    book().compile().save(tmp_path / "p")
    raw = bytearray((tmp_path / "p").read_bytes())
    raw[len(MAGIC)] = 99
    (tmp_path / "p").write_bytes(raw)
    with pytest.raises(PlanError, match="has plan format 99, this version reads 4"):
        Plan.open(tmp_path / "p")


@pytest.mark.parametrize("kept", [12, 60, 400, -50])
def test_a_plan_that_is_cut_short_is_refused(tmp_path: Path, kept: int) -> None:
    book().compile().save(tmp_path / "p")
    (tmp_path / "p").write_bytes((tmp_path / "p").read_bytes()[:kept])
    with pytest.raises(PlanError, match=r"is no plan|is cut short"):
        Plan.open(tmp_path / "p")


SMAPS = """
import re
from pathlib import Path

def mapped(path):
    # Kilobytes of the mappings of one file in this process, by the kernel's names.
    found = {}
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = line.endswith(path)
        elif inside and line.endswith(" kB"):
            name, kilobytes = line.split(":")
            found[name] = found.get(name, 0) + int(kilobytes.split()[0])
    return found
"""
READER = """
import json, sys
import headgate as hg
plan = hg.Plan.open(sys.argv[1])
events = [{"key": k, "x": k % 100} for k in range(0, 20_000, 7)]
print(plan.match(events, output="counts").num_rows, flush=True)
sys.stdin.readline()  # until the other process has read the same pages
print(json.dumps(mapped(sys.argv[1])), flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the kernel does not tell")
def test_two_processes_share_the_pages_of_a_plan_file(tmp_path: Path) -> None:
    made = Subscriptions()
    made.stream("s", {"key": "bigint", "x": "bigint"})
    for k in range(20_000):
        made.add(f"subscription {k}", f"key = {k} AND x >= {k % 100}")
    path = tmp_path / "plan"
    made.compile().save(path)
    command = [sys.executable, "-c", SMAPS + READER, str(path)]
    with ExitStack() as stack:
        readers = []
        for _ in range(2):
            started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            readers.append(stack.enter_context(started))
        counts = [int(r.stdout.readline()) for r in readers if r.stdout is not None]
        assert counts == [2_858, 2_858]
        told = []
        for reader in readers:
            assert reader.stdin is not None
            assert reader.stdout is not None
            reader.stdin.write("\n")
            reader.stdin.flush()
            told.append(json.loads(reader.stdout.readline()))
        for reader in readers:
            reader.communicate("\n", timeout=60)
    for smaps in told:
        assert smaps["Size"] * 1024 >= path.stat().st_size
        assert smaps["Rss"] > 500
        assert smaps["Private_Dirty"] + smaps["Shared_Dirty"] == 0, "nobody has a copy of a page"
        assert smaps["Shared_Clean"] >= 0.9 * smaps["Rss"], "both read the same pages"
