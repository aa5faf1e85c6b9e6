"""Sequences in a plan file: what is opened matches as what was compiled, and nothing is parsed or built to open it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.sequences.book import OPERATORS, columns_of, select
from tests.sequences.patterns import SCHEMAS, S, T, books, events

import headgate as hg
from headgate import Plan, PlanError
from headgate.errors import HeadgateError
from headgate.language import parser
from headgate.sequences import merging, shapes
from headgate.sequences.index import _Numbering

STOCK = {"name": "string", "price": "double", "vol": "bigint", "at": "bigint"}
TEXTS = {
    "pair": "SELECT e1.price AS p, e2.price AS q FROM FILTER {vol > 3} (stock) NEXT {$2.name = $1.name} stock",
    "rise": "SELECT * FROM stock FOLD {$2.name = $1.name, $2.price > $.price, SUM(price) AS total} stock PUBLISH rises",
    "after": "SELECT * FROM rises NEXT {name = 'A'} stock",
    "slow": "SELECT e2.name AS n FROM stock NEXT {LOWER($2.name) = LOWER($1.name)} stock",
    "quiet": "SELECT e1.vol AS v FROM FILTER {name = 'B'} (stock) ABSENT {$2.vol > $1.vol} stock WITHIN 3",
    "two": "SELECT e2.vol AS v FROM (FILTER {vol = 1} (stock) UNION FILTER {vol = 2} (stock)) NEXT {vol > 3} stock",
    "even": "SELECT e2.vol AS v FROM FILTER {is_even(vol)} (stock) NEXT {is_even($2.vol) AND $2.vol > $1.vol} stock",
}
EVENTS = [{"name": "ABab"[i % 4], "price": float(i % 7), "vol": i % 6, "at": i // 2} for i in range(60)]


@hg.operator
def is_even(event: Any, number: int) -> bool:
    return number % 2 == 0


def book() -> hg.Subscriptions:
    made = hg.Subscriptions([is_even]).stream("stock", STOCK, time="at")
    for name, text in TEXTS.items():
        made.add(name, text)
    return made


def test_an_opened_plan_matches_as_before(tmp_path: Path) -> None:
    plan = book().compile()
    plan.save(tmp_path / "p")
    opened = Plan.open(tmp_path / "p", [is_even])
    found = plan.match({"stock": EVENTS})
    assert set(found.column("subscription").to_pylist()) == TEXTS.keys()
    assert opened.match({"stock": EVENTS}).equals(found)
    assert opened.stats()["sequences"] == plan.stats()["sequences"]


def test_opening_and_matching_call_neither_parser_nor_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = book().compile()
    plan.save(tmp_path / "p")
    found = plan.match({"stock": EVENTS})

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("this was to be opened, not built")

    monkeypatch.setattr(parser, "_reduce", refused)
    monkeypatch.setattr(parser, "template", refused)
    monkeypatch.setattr(shapes.Shapes, "spine", refused)
    monkeypatch.setattr(merging.Merger, "merge", refused)
    monkeypatch.setattr(_Numbering, "build", refused)
    assert Plan.open(tmp_path / "p", [is_even]).match({"stock": EVENTS}).equals(found)


@pytest.mark.parametrize("name", TEXTS)
def test_an_opened_plan_explains_as_before(tmp_path: Path, name: str) -> None:
    plan = book().compile()
    plan.save(tmp_path / "p")
    opened = Plan.open(tmp_path / "p", [is_even])
    assert str(opened.explain(name, EVENTS)) == str(plan.explain(name, EVENTS))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=books(), s=events(), t=events(), missing=st.sampled_from(["null", "strict", "default", "total"]))
def test_whatever_compiles_is_saved_and_opened_as_it_was(texts: dict[str, str], s: Any, t: Any, missing: str) -> None:
    note(str(texts))
    subs = hg.Subscriptions(OPERATORS).extend("PREFIX : <http://example.org/>;")
    for schema in SCHEMAS:
        subs.stream(schema.stream, schema)
    for name, text in texts.items():
        subs.add(name, text, missing=missing)
    plan = subs.compile()
    with tempfile.TemporaryDirectory() as folder:
        plan.save(Path(folder) / "p")
        opened = Plan.open(Path(folder) / "p", OPERATORS)
    index, again = plan.sequences, opened.sequences
    assert index is not None
    assert again is not None
    batch = [columns_of(S, s), columns_of(T, t)]
    assert str(list(again.session().feed(batch))) == str(list(index.session().feed(batch)))
    for level, other in zip(index.levels, again.levels, strict=True):
        assert level.signatures == other.signatures
        for one, copy in ((level.compiled, other.compiled), (level.interpreted, other.interpreted)):
            assert [str(s.theta) for s in one.states] == [str(s.theta) for s in copy.states]
            assert [t.accepts for t in one.targets] == [t.accepts for t in copy.targets]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(1, 255))
def test_a_file_with_a_changed_byte_is_refused(saved: bytes, place: float, value: int) -> None:
    data = bytearray(saved)
    at = int(place * len(data))
    data[at] ^= value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p"
        path.write_bytes(data)
        # Only what fills the gaps between arrays is nobody's.
        assert is_refused(path) or not saved[at]


def is_refused(path: Path) -> bool:
    try:
        Plan.open(path, [is_even])
    except PlanError:
        return True
    return False


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("plan") / "p"
    book().compile().save(path)
    return path.read_bytes()


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95, 0.999])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, saved: bytes, share: float) -> None:
    (tmp_path / "p").write_bytes(saved[: int(share * len(saved))])
    with pytest.raises(PlanError, match=r"is no plan|is cut short"):
        Plan.open(tmp_path / "p")


def test_a_stranger_s_class_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.plan import file

    book().compile().save(tmp_path / "p")
    monkeypatch.delitem(file._CLASSES, "SavedLevel")
    with pytest.raises(PlanError, match="holds a SavedLevel, which this version does not know"):
        Plan.open(tmp_path / "p")


def test_tables_that_point_outside_themselves_are_refused(tmp_path: Path) -> None:
    plan = book().compile()
    assert plan.sequences is not None
    edges = plan.sequences.levels[0].numbered.tables.edges
    edges[0, 2] = 1_000_000
    plan.save(tmp_path / "p")
    with pytest.raises(PlanError, match="points outside itself"):
        Plan.open(tmp_path / "p", [is_even])


def test_a_plan_with_late_filters_opens_without_the_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subs = hg.Subscriptions([is_even]).stream("s", {"x": "bigint", "y": "bigint"})
    subs.add("even", "is_even(x) AND y > 3").add("odd", "NOT is_even(x) OR y = 1", missing="strict")
    plan = subs.compile()
    plan.save(tmp_path / "p")
    rows = [{"x": i, "y": i % 5} for i in range(20)]
    found = plan.match(rows)

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("this was to be opened, not parsed")

    monkeypatch.setattr(parser, "_reduce", refused)
    monkeypatch.setattr(parser, "template", refused)
    assert Plan.open(tmp_path / "p", [is_even]).match(rows).equals(found)


def test_constants_of_every_kind_come_back(tmp_path: Path) -> None:
    subs = hg.Subscriptions().stream(
        "s", {"i": "bigint", "d": "double", "t": "string", "b": "boolean", "at": "bigint"}, time="at"
    )
    constants = [
        "i = 9223372036854775807",
        "i > 2.5",
        "d = 1",
        "d < 1e300",
        "t = 'it''s'",
        "t IN ('a', 'ü')",
        "b = TRUE",
    ]
    for n, text in enumerate(constants):
        subs.add(f"q{n}", select("e2.i AS i", f"FILTER {{{text}}} (s) NEXT {{{text}}} s"))
    plan = subs.compile()
    plan.save(tmp_path / "p")
    rows = [
        {"i": (3, 2**63 - 1)[n % 2], "d": float(n % 3), "t": ("a", "ü", "it's")[n % 3], "b": n % 2 == 0, "at": n}
        for n in range(30)
    ]
    found = plan.match({"s": rows})
    assert len(np.unique(found.column("subscription").to_pylist())) == len(constants)
    assert Plan.open(tmp_path / "p").match({"s": rows}).equals(found)


def test_a_directory_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(HeadgateError, match="cannot open the plan"):
        Plan.open(tmp_path)
