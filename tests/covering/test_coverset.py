from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.covering.texts import MODES, SCHEMA, filters

from headgate.covering.coverset import CoverSet
from headgate.covering.decision import Procedure
from headgate.errors import DuplicateName, UnknownName, UsageError
from headgate.language.parser import parse_body
from headgate.oracle.filters import truth

NUMBERS = [None, 0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 9.0, float("nan")]
WHOLE = [None, -1, 0, 1, 2, 3, 9]
EVENTS = st.fixed_dictionaries(
    {
        ("x",): st.sampled_from(NUMBERS),
        ("i",): st.sampled_from(WHOLE),
        ("t",): st.sampled_from([None, "", "a", "ab", "abc", "b"]),
        ("b",): st.sampled_from([None, True, False]),
        ("n",): st.sampled_from(WHOLE[1:]),
        ("d",): st.sampled_from(NUMBERS),
    }
)


class Book(RuleBasedStateMachine):
    """Random adds and removes: what matches with covering is what matches without."""

    procedure = Procedure(budget=5.0)
    demote = "none"

    def __init__(self) -> None:
        super().__init__()
        self.covers = CoverSet(SCHEMA, self.procedure, demote=self.demote)
        self.texts: dict[int, tuple[Any, str]] = {}
        self.next = 0

    @rule(text=filters(["x", "i", "t"], 4), missing=MODES)
    def add(self, text: str, missing: str) -> None:
        change = self.covers.add(self.next, text, missing)
        assert change.cover is not None
        assert (change.cover.covered is True) is self.covers.passive(self.next)
        self.texts[self.next] = (parse_body(text), missing)
        self.next += 1

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.texts)))
        self.covers.remove(name)
        del self.texts[name]

    @precondition(lambda self: self.texts)
    @rule(event=EVENTS)
    def publish(self, event: dict[Any, Any]) -> None:
        asked: list[Any] = []

        def holds(name: Any) -> bool:
            asked.append(name)
            body, missing = self.texts[name]
            return truth(body, event, SCHEMA, missing) is True

        found = set(self.covers.matching(holds))
        assert len(asked) == len(set(asked)), "nothing is tested twice"
        assert found == {n for n, (body, missing) in self.texts.items() if truth(body, event, SCHEMA, missing) is True}

    @invariant()
    def every_coverer_is_active(self) -> None:
        active = set(self.covers.active)
        gates = self.covers.gates
        assert len(self.covers) == len(self.texts) == len(active) + len(gates)
        assert all(by <= active for by in gates.values())


class PairwiseBook(Book):
    procedure = Procedure("pairwise")


class DemotingBook(Book):
    demote = "group"


class PairwiseDemotingBook(Book):
    demote = "pairwise"


@pytest.mark.parametrize("book", [Book, PairwiseBook, DemotingBook, PairwiseDemotingBook])
def test_matches_with_covering_equal_matches_without(book: type[Book]) -> None:
    case = book.TestCase
    case.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
    case("runTest").runTest()


def test_a_coverer_that_leaves_promotes_whom_it_covered() -> None:
    covers = CoverSet({"x": "double"})
    covers.add("left", "x BETWEEN 0 AND 5")
    covers.add("right", "x BETWEEN 4 AND 9")
    change = covers.add("middle", "x BETWEEN 3 AND 6")
    assert change.cover is not None
    assert set(change.cover.by) == {"left", "right"}
    assert covers.gates == {"middle": frozenset({"left", "right"})}
    assert covers.remove("left").promoted == ("middle",)
    assert covers.gates == {}


def test_a_promoted_subscription_covers_those_after_it() -> None:
    covers = CoverSet({"x": "double"})
    covers.add("all", "x > 0")
    covers.add("large", "x > 10")
    covers.add("larger", "x > 20")
    assert covers.remove("all").promoted == ("large",)
    assert covers.gates == {"larger": frozenset({"large"})}


def test_a_passive_subscription_leaves_without_a_trace() -> None:
    covers = CoverSet({"x": "double"})
    covers.add("all", "x > 0")
    covers.add("large", "x > 10")
    assert covers.remove("large").promoted == ()
    assert covers.remove("all").promoted == ()
    assert len(covers) == 0


def test_a_newcomer_demotes_what_it_covers_if_asked() -> None:
    plain, demoting = CoverSet({"x": "double"}), CoverSet({"x": "double"}, demote="pairwise")
    for covers in (plain, demoting):
        covers.add("small", "x BETWEEN 4 AND 5")
        covers.add("inner", "x = 4")
        covers.add("large", "x BETWEEN 0 AND 9")
    assert set(plain.active) == {"small", "large"}
    assert demoting.gates == {"small": frozenset({"large"}), "inner": frozenset({"large"})}


def test_a_group_demotes_what_its_members_cover_together() -> None:
    covers = CoverSet({"x": "bigint"}, demote="group")
    covers.add("middle", "x BETWEEN 3 AND 6")
    covers.add("left", "x <= 4")
    assert covers.add("right", "x >= 5").demoted == ("middle",)


def test_whoever_a_failing_coverer_covers_is_tested_itself() -> None:
    covers = CoverSet({"x": "double"})
    covers.add("broken", "x > 0")
    covers.add("large", "x > 10")
    assert list(covers.matching(lambda name: None if name == "broken" else True)) == ["large"]


def test_what_is_too_wide_or_opaque_stays_active_and_is_counted() -> None:
    covers = CoverSet()
    wide = " AND ".join(f"(a{i} > 1 OR b{i} > 1)" for i in range(12))
    covers.add("wide", wide)
    covers.add("regex", "name MATCHES 'a'")
    covers.add("other", "name MATCHES 'b'")
    assert set(covers.active) == {"wide", "regex", "other"}
    assert covers.unknown == 3


def test_duplicates_are_covered() -> None:
    covers = CoverSet({"x": "double"})
    covers.add(1, "x > 0")
    covers.add(2, "x > 0")
    assert covers.gates == {2: frozenset({1})}


def test_names_are_checked() -> None:
    covers = CoverSet({"x": "double"})
    covers.add(1, "x > 0")
    with pytest.raises(DuplicateName, match="there is a subscription 1 already"):
        covers.add(1, "x > 5")
    with pytest.raises(UnknownName, match="there is no subscription 2"):
        covers.remove(2)
    with pytest.raises(UsageError, match="none, pairwise, group"):
        CoverSet(demote="all")


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=70, max_size=300), st.randoms())
def test_rows_survive_compaction_and_renumbering(cuts: list[int], random: Any) -> None:
    covers = CoverSet({"x": "bigint"})
    for i, cut in enumerate(sorted(cuts)):
        covers.add(i, f"x BETWEEN {cut} AND {cut + 1}")
    gone = random.sample(range(len(cuts)), len(cuts) * 3 // 4)
    for i in gone:
        covers.remove(i)
    left = [c for i, c in enumerate(sorted(cuts)) if i not in set(gone)]
    for value in range(min(cuts) - 1, max(cuts) + 3, 7):
        expected = any(c <= value <= c + 1 for c in left)
        change = covers.add("probe", f"x = {value}")
        assert change.cover is not None
        assert change.cover.covered is expected
        covers.remove("probe")
