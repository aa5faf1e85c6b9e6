"""What the parser says about the slips that people make: message, place and hint."""

from __future__ import annotations

import pytest

from headgate.errors import SyntaxProblem
from headgate.language.parser import parse_body, parse_script

BODIES = [
    ("a == 1", 4, "'=' does not fit here", "one = compares"),
    ("a > = 1", 5, "'=' does not fit here", "write >= without a space"),
    ("a < = 1", 5, "'=' does not fit here", "write <= without a space"),
    ("a < > 1", 5, "'>' does not fit here", "write <> without a space"),
    ("a AND AND b", 7, "'AND' does not fit here", "one AND is enough"),
    ("a OR OR b", 6, "'OR' does not fit here", "one OR is enough"),
    ("a = 1 AND", 10, "the text ends too early", "expected a name or a value or NOT"),
    ("a =", 4, "the text ends too early", "expected a name or a value"),
    ("(a = 1", 7, "the text ends too early", "expected ')'"),
    ("a = 1)", 6, "')' does not fit here", "nothing is open here for it to close"),
    ("a equals 1", 3, "'equals' does not fit here", "write ="),
    ("a b", 3, "'b' does not fit here", "expected a comparison, AND, OR or the end"),
    ("a = 1 b = 2", 7, "B is no unit of time", "two conditions are joined with AND or OR"),
    ("a NULL", 3, "'NULL' does not fit here", "write IS NULL"),
    ("a IS 1", 6, "'1' does not fit here", "expected NOT or NULL"),
    ("a IS TRUE", 6, "'TRUE' does not fit here", "write the attribute alone, or = TRUE"),
    ("a IS FALSE", 6, "'FALSE' does not fit here", "write NOT and the attribute, or = FALSE"),
    ("a = NOT 5", 5, "'NOT' does not fit here", "<> says not equal"),
    ("1 < a < 5", 7, "'<' does not fit here", "comparisons do not chain: join two of them with AND"),
    ("NOT LIKE 'x'", 5, "'LIKE' does not fit here", "say what is compared: attribute NOT LIKE ..."),
    ("a XOR b", 3, "'XOR' does not fit here", "write (a OR b) AND NOT (a AND b)"),
    ("from = 1", 1, "'from' does not fit here", "FROM is a reserved word; as a name it is written `from`"),
    ("a BETWEEN 1, 2", 12, "',' does not fit here", "expected AND"),
    ("a IN 1", 6, "'1' does not fit here", "expected '('"),
    ("a IN ()", 7, "')' does not fit here", "expected a name or a value"),
    ("a IN (1, 2", 11, "the text ends too early", "expected ')' or ','"),
    ("a MATCHES b", 11, "'b' does not fit here", "expected a text in single quotes"),
    ("a STARTS 'x'", 10, "\"'x'\" does not fit here", "expected WITH"),
    ("a NOT 5", 7, "'5' does not fit here", "expected BETWEEN, CONTAINS, ENDS, ILIKE, IN, LIKE, MATCHES or STARTS"),
    ("a[0] = 1", 2, "'[' does not fit here", "arrays have no index"),
    ("a && b", 3, "the character '&' has no meaning here", "write AND"),
    ("a || b", 3, "the character '|' has no meaning here", "write OR"),
    ("!a", 1, "the character '!' has no meaning here", "write NOT"),
    ("a ~ 'x'", 3, "the character '~' has no meaning here", "write MATCHES"),
    ("a = #", 5, "the character '#' has no meaning here", ""),
    ('a = "x"', 5, "text stands in single quotes", "write 'x'"),
    ("a = 'x", 5, "this text literal is never closed", "close it with '; a quote inside is written ''"),
    ("a = `x", 5, "this quoted name is never closed", "close it with `"),
    ("$ = 1", 1, "'$' needs a name behind it", "write $1.name, $2.name or $.name"),
    ("? = 1", 1, "'?' needs a name behind it", "a variable is written ?name"),
    ("at > DATE '2026-01-01'", 6, "DATE before a text has no meaning", "write TIMESTAMP '...' for a time"),
    ("DUR < 5 fortnights", 9, "FORTNIGHTS is no unit of time", "the units are microseconds, milliseconds"),
    ("LOWER(a, b) = 'x'", 1, "LOWER takes one argument, not 2", ""),
    ("ALL(1) = 1", 1, "ALL takes an ARRAY attribute", "write ALL(name)"),
    ("SUM(*) = 1", 1, "SUM(*) has no meaning", "only COUNT takes *"),
    ("", 1, "the text is empty", "write a predicate, such as price < 100"),
    ("a = 1; b = 2", 8, "one text holds one subscription", "load a script with parse()"),
    ("DROP STREAM s", 1, "this is a statement, not the body of a subscription", ""),
]
GRAPHS = [
    ("GRAPH { }", 9, "'}' does not fit here", "expected a vertex (?x, _:x, prefix:name, <iri> or a literal) or FILTER"),
    ("GRAPH { _:H a }", 15, "'}' does not fit here", "expected a vertex"),
    ("GRAPH { _:H a :X", 17, "the text ends too early", "expected ',', '.', ';' or '}'"),
    ("GRAPH { FILTER (?x < 1) }", 1, "a GRAPH needs at least one statement", "write GRAPH { _:H a :Class }"),
    ('GRAPH { _:H :p "x }', 16, "this text literal is never closed", 'close it with "; a quote inside is written \\"'),
    (r'GRAPH { _:H :p "x\q" }', 16, r"the escape \q has no meaning", ""),
    (r'GRAPH { _:H :p "\ud800" }', 16, r"\ud800 is no character", ""),
    (
        "GRAPH { (_:H, ?y, (`odd one`, p, D)) }",
        20,
        "a class or property has no odd characters",
        "write prefix:name or <iri>",
    ),
]
SEQUENCES = [
    ("SELECT FROM s", 8, "'FROM' does not fit here", "say what to select; * is everything"),
    ("SELECT * FROM", 14, "the text ends too early", "expected a name, '(' or FILTER"),
    ("SELECT * FROM s WHERE a > 1", 17, "'WHERE' does not fit here", "FILTER {condition} (stream)"),
    ("SELECT * FROM s HAVING a > 1", 17, "'HAVING' does not fit here", "FILTER {condition} (sequence)"),
    ("SELECT * FROM s UNION t", 17, "'UNION' does not fit here", "UNION stands in parentheses: (a UNION b)"),
    ("SELECT * FROM s FOLD t", 22, "'t' does not fit here", "expected '{'"),
    ("SELECT * FROM s FOLD {x, y, z} t", 29, "an aggregate of a FOLD needs a name", "join predicates with AND"),
    ("SELECT * FROM s FOLD {x, y, a + b AS z} t", 29, "this is no aggregate", "use one of AVG, COLLECT, COUNT"),
    ("SELECT * FROM s ABSENT {x} t", 29, "the text ends too early", "expected WITHIN"),
    ("SELECT * FROM s ABSENT {x} t WITHIN -5", 37, "'-' does not fit here", "expected a number"),
    ("SELECT * FROM FILTER {a > 1} s", 30, "'s' does not fit here", "expected '('"),
]
STATEMENTS = [
    ("CREATE TABLE s (a STRING)", 8, "'TABLE' does not fit here", "expected ONTOLOGY, STREAM or SUBSCRIPTION"),
    ("CREATE STREAM s", 16, "the text ends too early", "expected '('"),
    ("CREATE STREAM s (a STRING,)", 27, "')' does not fit here", "expected a name"),
    ("CREATE STREAM s (a ARRAY<STRING)", 32, "')' does not fit here", "expected '>'"),
    ("CREATE STREAM s (a STRING NOT)", 30, "')' does not fit here", "expected NULL"),
    ("CREATE SUBSCRIPTION s ON t a = 1", 28, "'a' does not fit here", "expected AS or WITH"),
    ("CREATE SUBSCRIPTION s ON t AS", 30, "the text ends too early", "expected a name or a value, NOT or SELECT"),
    ("CREATE SUBSCRIPTION s WITH missing = 'null' AS a", 28, "'missing' does not fit here", "expected '('"),
    ("CREATE ONTOLOGY m FROM market.ttl", 24, "'market.ttl' does not fit here", "expected a text in single quotes"),
    ("PREFIX x <http://a>", 8, "'x' does not fit here", "a prefix ends with a colon: PREFIX name: <http://...>"),
    ("PREFIX x:y <http://a>", 8, "a prefix ends with a colon", "write PREFIX x: <...>"),
    ("PREFIX x: 'http://a'", 11, "\"'http://a'\" does not fit here", "expected an <iri>"),
    ("DROP s", 6, "'s' does not fit here", "expected ONTOLOGY, STREAM or SUBSCRIPTION"),
    ("price < 100", 1, "a script holds statements", "write CREATE SUBSCRIPTION name ON stream AS ..."),
]


@pytest.mark.parametrize(("text", "column", "message", "hint"), BODIES + GRAPHS + SEQUENCES)
def test_a_slip_in_a_body_is_named_with_its_place_and_a_hint(text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_body(text)
    _is(caught.value, column, message, hint)


@pytest.mark.parametrize(("text", "column", "message", "hint"), STATEMENTS)
def test_a_slip_in_a_statement_is_named_with_its_place_and_a_hint(
    text: str, column: int, message: str, hint: str
) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_script(text)
    _is(caught.value, column, message, hint)


def _is(problem: SyntaxProblem, column: int, message: str, hint: str) -> None:
    assert message in problem.message
    assert hint in problem.hint
    assert bool(hint) == bool(problem.hint)
    assert problem.place is not None
    assert problem.place.column == column


def test_a_long_token_is_cut_in_the_message() -> None:
    with pytest.raises(SyntaxProblem, match=r"'xxxxx.*\.\.\.' does not fit here"):
        parse_body("a = 1 + b " + "x" * 100)
