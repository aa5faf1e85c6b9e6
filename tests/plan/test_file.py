"""Plans as files: what is written is read back, mapped, and what is no plan is refused."""

from __future__ import annotations

import subprocess
import sys
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
    with pytest.raises(PlanError, match="has plan format 99, this version reads 1"):
        Plan.open(tmp_path / "p")


@pytest.mark.parametrize("kept", [12, 60, 400, -50])
def test_a_plan_that_is_cut_short_is_refused(tmp_path: Path, kept: int) -> None:
    book().compile().save(tmp_path / "p")
    (tmp_path / "p").write_bytes((tmp_path / "p").read_bytes()[:kept])
    with pytest.raises(PlanError, match=r"is no plan|is cut short"):
        Plan.open(tmp_path / "p")
