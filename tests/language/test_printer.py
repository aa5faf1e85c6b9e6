"""Printing: what is printed reads back as the same tree, and is what a person would have written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from tests.language import strategies

from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.parser import parse_body, parse_script
from headgate.language.printer import print_name, print_node, print_script


@settings(max_examples=300, deadline=None)
@given(strategies.expressions())
def test_an_expression_reads_back_as_it_was(body: Node) -> None:
    assert parse_body(print_node(body)) == body


@settings(max_examples=200, deadline=None)
@given(strategies.graph_patterns())
def test_a_graph_pattern_reads_back_as_it_was(body: Node) -> None:
    assert parse_body(print_node(body)) == body


@settings(max_examples=150, deadline=None)
@given(strategies.patterns())
def test_a_sequence_reads_back_as_it_was(body: Node) -> None:
    assert parse_body(print_node(body)) == body


@settings(max_examples=150, deadline=None)
@given(strategies.statements())
def test_a_statement_reads_back_as_it_was(statement: Any) -> None:
    assert parse_script(print_script([statement])) == [statement]


@pytest.mark.nightly
@settings(max_examples=20_000, deadline=None)
@given(strategies.statements())
def test_a_statement_reads_back_as_it_was_in_the_long_run(statement: Any) -> None:
    assert parse_script(print_script([statement])) == [statement]


BODIES = [
    "name = 'IBM' AND price < 100",
    "(a OR b) AND NOT (c AND d)",
    "a OR b AND c",
    "NOT a = 1",
    "a NOT BETWEEN 1 AND 2",
    "a IS NOT NULL",
    "a NOT IN (1, -2.5, NULL)",
    "a NOT LIKE 'x%' ESCAPE '!'",
    "a NOT CONTAINS 'it''s'",
    "a NOT STARTS WITH 'x'",
    "a NOT MATCHES '^x'",
    "a - (b - c) = a - b - c",
    "(a + b) * -c / 2 = -(-d)",
    "LOWER(a) = UPPER('x')",
    "ALL(tags) ILIKE 'x'",
    "at - TIMESTAMP '2026-01-01' < 1.5 HOURS",
    "DUR <= 1 DAY",
    "(a = 1) = (b IS NULL)",
    "`select` = `a b`.`x``y` AND time < $1.in",
    "loc_in('Bronx') AND mob(?people) AND ?people > 50",
    'GRAPH HOM doc { _:H a :Sale . _:H :of ?1 . ?1 :n "a\\n\\"b\\""@en . ?1 :k -5 . FILTER (?1 < 4 OR ?1 = \'x\') }',
    "SELECT * FROM s AS l NEXT {$2.a = $1.a} t NEXT u",
    "SELECT a AS b, n + 1 FROM FILTER {a > 1} (s NEXT t) AS f FOLD {a, COUNT(*) AS n, $.k + 1 AS k INIT 0} s PUBLISH o",
    "SELECT * FROM s NEXT (t NEXT u)",
    "SELECT * FROM (s UNION t) AS u ABSENT {a} (SELECT * FROM s) AS w WITHIN 5",
]


@pytest.mark.parametrize("text", BODIES)
def test_a_text_written_by_a_person_is_printed_as_it_was(text: str) -> None:
    assert print_node(parse_body(text)) == text


STATEMENTS = [
    "CREATE STREAM s (a STRING NOT NULL, b.c DOUBLE DEFAULT -1, d ARRAY<STRING>) TIME a, b.c;\n",
    "CREATE STREAM s (a GRAPH) AS GRAPH { _:H :p `a` };\n",
    "PREFIX : <http://example.org/>;\nPREFIX u: <#>;\n",
    "CREATE ONTOLOGY m FROM 'm.ttl';\n",
    "CREATE SUBSCRIPTION x ON s WITH (missing = 'strict', k = -1) AS a;\nDROP SUBSCRIPTION x;\n",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_script_written_by_a_person_is_printed_as_it_was(text: str) -> None:
    assert print_script(parse_script(text)) == text


@pytest.mark.parametrize(
    ("name", "printed"),
    [("a", "a"), ("time", "time"), ("Null", "`Null`"), ("a.b", "a.b"), ("a b", "`a b`"), ("9", "`9`"), ("`", "````")],
)
def test_a_name_is_quoted_only_where_it_must_be(name: str, printed: str) -> None:
    assert print_name(name) == printed


@pytest.mark.parametrize("value", [0.1, 1e300, 5e-324, -0.0, 1.0, 10**30, -(2**63)])
def test_a_number_reads_back_exactly(value: float) -> None:
    read = parse_body(print_node(ast.Compare("=", ast.Literal(value), ast.Literal(value))))
    assert isinstance(read, ast.Compare)
    assert isinstance(read.left, ast.Literal)
    assert repr(read.left.value) == repr(value)


def test_the_negative_of_a_written_negative_zero_stays_apart() -> None:
    assert parse_body(print_node(ast.Negate(ast.Literal(0)))) == ast.Negate(ast.Literal(0))
