from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.covering.texts import MODES, SCHEMA, filters

from headgate.covering.cover import Cover, cover
from headgate.errors import TypeProblem, UnknownName, UsageError
from headgate.language.parser import parse_body
from headgate.oracle.covering import uncovered, witness_values
from headgate.oracle.filters import truth
from headgate.schema import Schema


def brute(subject: tuple[str, str], others: list[tuple[str, str]], schema: Schema) -> bool:
    """Whether the oracle finds no event that shows a gap."""
    parsed = [(parse_body(text), missing) for text, missing in (subject, *others)]
    values = witness_values(parsed, schema)
    return next(uncovered(parsed[0], parsed[1:], schema, values), None) is None


def flat(event: dict[str, Any]) -> dict[tuple[str, ...], Any]:
    return {(name,): value for name, value in event.items()}


def narrowed(names: list[str]) -> Schema:
    """SCHEMA with some attributes only: the oracle's product of values must stay small."""
    kept = {path: a for path, a in SCHEMA.attributes.items() if path[0] in names}
    return Schema(SCHEMA.stream, kept)


@st.composite
def decisions(draw: st.DrawFn) -> tuple[Schema, tuple[str, str], list[tuple[str, str]]]:
    names = sorted(draw(st.sets(st.sampled_from("xitbnd"), min_size=1, max_size=2)))
    if not set(names) & set("xind"):
        names = sorted([*names, "n"])
    texts = st.tuples(filters(names), MODES)
    return narrowed(names), draw(texts), draw(st.lists(texts, min_size=0, max_size=4))


def check(case: tuple[Schema, tuple[str, str], list[tuple[str, str]]], mode: str) -> Cover:
    schema, (text, missing), others = case
    found = cover(text, others, schema, missing=missing, mode=mode, budget=20.0)
    if found.covered is None:
        return found
    if found.covered:
        by = [others[int(str(i))] for i in found.by]
        assert brute((text, missing), by, schema), f"not covered by {found.by}"
    else:
        assert found.witness is not None
        row = {**dict.fromkeys(schema.attributes), **flat(found.witness)}
        # What the witness does not mention may be anything; an attribute that cannot be missing gets a value.
        row = {path: 0 if value is None and schema.attributes[path].not_null else value for path, value in row.items()}
        assert truth(parse_body(text), row, schema, missing) is True
        assert not any(truth(parse_body(t), row, schema, m) is True for t, m in others)
    return found


@settings(max_examples=200, deadline=None)
@given(decisions())
def test_an_exact_answer_is_never_wrong_and_never_unknown(case: Any) -> None:
    found = check(case, "exact")
    schema, subject, others = case
    assert found.covered is brute(subject, others, schema)
    assert found.certainty == 1.0


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@settings(max_examples=10_000, deadline=None)
@given(decisions())
def test_ten_thousand_exact_answers_are_never_wrong(case: Any) -> None:
    schema, subject, others = case
    assert check(case, "exact").covered is brute(subject, others, schema)


@pytest.mark.parametrize("mode", ["search", "mcs", "pairwise"])
@settings(max_examples=40, deadline=None)
@given(case=decisions())
def test_the_cheaper_modes_are_right_where_they_answer(case: Any, mode: str) -> None:
    check(case, mode)


def test_two_subscriptions_cover_what_neither_covers_alone() -> None:
    found = cover("x BETWEEN 830 AND 870", ["x BETWEEN 820 AND 850", "x BETWEEN 840 AND 880"], {"x": "double"})
    assert found.covered is True
    assert found.by == (0, 1)
    assert not cover("x BETWEEN 830 AND 870", ["x BETWEEN 820 AND 850"], {"x": "double"})


def test_the_examples_of_the_paper_in_two_dimensions() -> None:
    schema = {"x1": "double", "x2": "double"}
    s = "x1 BETWEEN 830 AND {} AND x2 BETWEEN 1003 AND 1006"
    s1 = "x1 BETWEEN 820 AND 850 AND x2 BETWEEN {} AND {}"
    covered = cover(
        s.format(870), [s1.format(1001, 1007), "x1 BETWEEN 840 AND 880 AND x2 BETWEEN 1002 AND 1009"], schema
    )
    assert covered.by == (0, 1)
    open_ = cover(s.format(890), [s1.format(1002, 1009), "x1 BETWEEN 840 AND 870 AND x2 BETWEEN 1001 AND 1007"], schema)
    assert open_.covered is False
    assert open_.witness is not None
    assert 870 < open_.witness["x1"] <= 890
    third = "x1 BETWEEN 810 AND 890 AND x2 BETWEEN 1004 AND 1005"
    others = [s1.format(1001, 1007), "x1 BETWEEN 840 AND 880 AND x2 BETWEEN 1002 AND 1009", third]
    assert cover(s.format(870), others, schema).by == (0, 1), "MCS removes the third"


def test_a_gap_between_whole_numbers_is_a_gap_for_doubles_only() -> None:
    others = ["x <= 5", "x >= 6"]
    assert cover("x > 0", others, {"x": "bigint"}).covered is True
    found = cover("x > 0", others, {"x": "double"})
    assert found.covered is False
    assert found.witness == {"x": 5.1}


def test_finite_sets_cover_together() -> None:
    assert cover("x IN (1, 2, 3)", ["x = 1", "x = 2", "x = 3"], {"x": "bigint"}).by == (0, 1, 2)
    assert cover("x IN (1, 2, 3)", ["x = 1", "x = 3"], {"x": "bigint"}).witness == {"x": 2}


def test_a_missing_attribute_is_part_of_the_space() -> None:
    assert cover("TRUE", ["x < 5", "x >= 5"], {"x": "bigint"}).witness == {"x": None}
    assert cover("TRUE", ["x < 5", "x >= 5", "x IS NULL"], {"x": "bigint"}).covered is True
    schema = Schema.of("s", {"x": "bigint"}, not_null=["x"])
    assert cover("TRUE", ["x < 5", "x >= 5"], schema).covered is True


def test_the_infinite_is_never_clipped_away() -> None:
    assert cover("x > 5", ["x <= 1.7976931348623157e308"], {"x": "double"}).witness == {"x": float("inf")}


def test_modes_cover_each_other_as_the_semantics_say() -> None:
    assert cover("x > 0", ["x > 0"], missing="strict")
    assert cover("x > 0 OR y > 0", [("x > 0 OR y > 0", "null")], missing="strict")
    assert cover("x > 0 AND y > 0", [("x > 0", "strict")])
    found = cover("x > 0 OR y > 0", [("x > 0 OR y > 0", "strict")])
    assert found.covered is False
    assert found.witness is not None
    assert None in found.witness.values()


def test_a_default_replaces_what_is_missing() -> None:
    schema = Schema.of("s", {"x": "double"}, defaults={"x": 7})
    assert cover("x IS NULL", [("x > 5", "default")], schema).covered is True
    assert cover("x IS NULL", [("x > 8", "default")], schema).covered is False


def test_prefixes_are_ranges_of_text() -> None:
    schema = {"name": "string"}
    assert cover("name LIKE 'abc%'", ["name STARTS WITH 'ab'"], schema)
    assert cover("name = 'abz'", ["name LIKE 'ab%'"], schema)
    assert cover("name LIKE 'ab%'", ["name >= 'ab' AND name < 'ac'"], schema)
    assert cover("name LIKE 'ab%'", ["name > 'ab'"], schema).witness == {"name": "ab"}


def test_opaque_atoms_are_compared_by_what_they_say() -> None:
    regex = "name MATCHES 'a+'"
    assert cover(f"{regex} AND x > 5", [f"{regex} AND x > 3"])
    assert cover(regex, [f"{regex} AND x > 3", f"{regex} AND x <= 3", f"{regex} AND x IS NULL"]).by == (0, 1, 2)
    unknown = cover(regex, ["name MATCHES 'a'"])
    assert (unknown.covered, unknown.certainty, unknown.method) == (None, 0.0, "opaque")


def test_a_witness_stands_where_opaque_atoms_cannot_matter() -> None:
    found = cover("x > 3", ["x > 5 AND name MATCHES 'a'"], {"x": "double", "name": "string"})
    assert found.covered is False
    assert found.witness is not None
    assert 3 < found.witness["x"] <= 5 or found.witness["name"] is None
    assert cover("x > 3", ["x > 3 AND op(1)", "x > 3 AND NOT op(1)"], {"x": "double"}).covered is None


def test_terms_are_ordered_like_numbers() -> None:
    assert cover("price * vol > 20", ["price * vol > 10"])
    assert cover("price * vol > 10", ["price * vol > 20"]).covered is None
    assert cover("low < high", ["high >= low"], {"low": "double", "high": "double"})
    assert cover("LOWER(name) = 'ibm'", ["LOWER(name) LIKE 'ib%'"])


def test_elements_of_arrays_exclude_nothing() -> None:
    schema = {"tags": "array<bigint>"}
    assert cover("tags = 1 AND tags = 2", ["tags = 2"], schema).covered is True
    assert cover("tags > 5", ["tags > 3"], schema).covered is None


def test_variables_are_bound_alike() -> None:
    assert cover("op(1, ?p) AND ?p > 7", ["op(1, ?p) AND ?p > 5"])
    assert cover("op(1, ?p) AND ?p > 5", ["op(1, ?p) AND ?p > 7"]).covered is None


def test_a_filter_that_never_matches_is_covered_by_nothing() -> None:
    found = cover("x < 1 AND x > 2", [])
    assert (found.covered, found.by, found.method) == (True, (), "empty")


def test_a_wide_filter_is_unknown_but_covers_its_equal() -> None:
    wide = " AND ".join(f"(a{i} > 1 OR b{i} > 1)" for i in range(12))
    assert cover(wide, ["a0 > 5"]).method == "wide"
    assert cover(wide, [wide]).covered is True


def test_names_are_given_back() -> None:
    assert cover("x > 5", {"low": "x > 1", "high": "x > 9"}, {"x": "double"}).by == ("low",)


def test_a_bad_text_is_refused_with_a_caret() -> None:
    with pytest.raises(TypeProblem, match=r"x = 'a'"):
        cover("x = 'a'", [], {"x": "double"})
    with pytest.raises(UnknownName, match="no attribute y"):
        cover("x > 1", ["y > 1"], {"x": "double"})


def test_a_mode_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="the modes are exact, search, rspc"):
        cover("x > 1", [], mode="quick")
    with pytest.raises(UsageError, match="missing = 'maybe' is no mode"):
        cover("x > 1", [], missing="maybe")


def test_a_budget_that_is_spent_leaves_the_answer_open() -> None:
    dimensions = 14
    others = [f"a{i} > {c}" for i in range(dimensions) for c in (8,)]
    parity = " OR ".join(f"(a{i} <= 8 AND a{i + 1} <= 8)" for i in range(dimensions - 1))
    found = cover("TRUE", [*others, parity], {f"a{i}": "bigint" for i in range(dimensions)}, budget=1e-9)
    assert found.covered in (None, False)
    with pytest.raises(UsageError, match="budget"):
        cover("x > 1", [], budget=0)
