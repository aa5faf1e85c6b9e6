"""Every construct of LANGUAGE.md becomes the tree it stands for."""

from __future__ import annotations

import pytest

from headgate.language import ast
from headgate.language.ast import Attribute, Literal, Node, Variable
from headgate.language.parser import parse_body, parse_script
from headgate.language.tokens import SOFT

A, B, C = (Attribute((name,)) for name in "abc")
ONE, TWO, X = Literal(1), Literal(2), Literal("x")

PREDICATES: list[tuple[str, Node]] = [
    ("a = 1", ast.Compare("=", A, ONE)),
    ("a <> 1", ast.Compare("<>", A, ONE)),
    ("a != 1", ast.Compare("<>", A, ONE)),
    ("1 <= a", ast.Compare("<=", ONE, A)),
    ("a BETWEEN 1 AND 2", ast.Between(A, ONE, TWO)),
    ("a NOT BETWEEN 1 AND 2", ast.Not(ast.Between(A, ONE, TWO))),
    ("a BETWEEN 1 AND 2 AND b", ast.And((ast.Between(A, ONE, TWO), B))),
    ("a IN (1, 2)", ast.In(A, (ONE, TWO))),
    ("a NOT IN (1)", ast.Not(ast.In(A, (ONE,)))),
    ("a LIKE 'x'", ast.Test("LIKE", (A, X))),
    ("a NOT LIKE 'x' ESCAPE '!'", ast.Not(ast.Test("LIKE", (A, X, ast.Literal("!"))))),
    ("a ILIKE 'x'", ast.Test("ILIKE", (A, X))),
    ("a CONTAINS 'x'", ast.Test("CONTAINS", (A, X))),
    ("'x' CONTAINS a", ast.Test("CONTAINS", (X, A))),
    ("a NOT CONTAINS 'x'", ast.Not(ast.Test("CONTAINS", (A, X)))),
    ("a STARTS WITH 'x'", ast.Test("STARTS WITH", (A, X))),
    ("a ENDS WITH 'x'", ast.Test("ENDS WITH", (A, X))),
    ("a MATCHES 'x'", ast.Test("MATCHES", (A, X))),
    ("a NOT MATCHES 'x'", ast.Not(ast.Test("MATCHES", (A, X)))),
    ("a IS NULL", ast.IsNull(A)),
    ("a IS NOT NULL", ast.Not(ast.IsNull(A))),
    ("a", A),
    ("NOT a", ast.Not(A)),
    ("TRUE", Literal(True)),
    ("LENGTH(a) = 1", ast.Compare("=", ast.Function("LENGTH", (A,)), ONE)),
    ("lower(a) = upper('x')", ast.Compare("=", ast.Function("LOWER", (A,)), ast.Function("UPPER", (X,)))),
    ("ABS(-a) > 1", ast.Compare(">", ast.Function("ABS", (ast.Negate(A),)), ONE)),
    ("ALL(a) = 1", ast.Compare("=", ast.Every(A), ONE)),
    ("a = TIMESTAMP '2026-01-01'", ast.Compare("=", A, ast.Instant("2026-01-01"))),
    ("a - b > 1.5 hours", ast.Compare(">", ast.Arithmetic("-", A, B), ast.Span(1.5, "HOUR"))),
    ("a = NULL", ast.Compare("=", A, Literal(None))),
]


@pytest.mark.parametrize(("text", "tree"), PREDICATES, ids=[text for text, _ in PREDICATES])
def test_a_predicate_is_parsed(text: str, tree: Node) -> None:
    assert parse_body(text) == tree


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a OR b AND c", "a OR (b AND c)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT a = b", "NOT (a = b)"),
        ("a + b * c = 1", "(a + (b * c)) = 1"),
        ("a - b - c = 1", "((a - b) - c) = 1"),
        ("a / b % c = 1", "((a / b) % c) = 1"),
        ("-a * b = 1", "((-a) * b) = 1"),
        ("a - -1 = 1", "a - (-1) = 1"),
    ],
)
def test_precedence_is_that_of_sql(text: str, grouped: str) -> None:
    assert parse_body(text) == parse_body(grouped)


def test_and_and_or_are_flat() -> None:
    assert parse_body("(a AND b) AND c") == ast.And((A, B, C)) == parse_body("a AND (b AND c)")


def test_a_minus_sign_before_a_number_belongs_to_the_number() -> None:
    assert parse_body("a = -1") == ast.Compare("=", A, Literal(-1))
    assert parse_body("a = - -1") == ast.Compare("=", A, ast.Negate(Literal(-1)))


def test_keywords_are_read_in_any_case() -> None:
    assert parse_body("a between 1 And 2 oR not B is nUlL") == parse_body("a BETWEEN 1 AND 2 OR NOT B IS NULL")


def test_names_keep_their_case() -> None:
    assert parse_body("Price") == Attribute(("Price",))


def test_comments_and_line_breaks_are_skipped() -> None:
    assert parse_body("a -- one\n  = -- = 2\n1--") == ast.Compare("=", A, ONE)


@pytest.mark.parametrize("word", [*SOFT, "START", "END", "DAYS", "TIMESTAMP", "COUNT", "LOWER", "ALL", "STRING"])
def test_a_word_that_is_not_reserved_can_be_a_column(word: str) -> None:
    name = word.lower()
    assert parse_body(f"{name} = 1") == ast.Compare("=", Attribute((name,)), ONE)
    assert parse_body(f"a = 1 AND NOT {name}") == ast.And((ast.Compare("=", A, ONE), ast.Not(Attribute((name,)))))
    (stream,) = parse_script(f"CREATE STREAM {name} (a STRING, {name} TIMESTAMP) TIME {name};")
    assert isinstance(stream, ast.CreateStream)
    assert (stream.name, stream.time) == (name, ((name,),))


# --------------------------------------------------------- operators, graphs


def test_an_operator_takes_literals_attributes_and_variables() -> None:
    call = ast.Call("mob", (X, Literal(-1), Attribute(("a", "b")), Variable("people")))
    assert parse_body("mob('x', -1, a.b, ?people) AND ?people > 1") == ast.And(
        (call, ast.Compare(">", Variable("people"), ONE))
    )
    assert parse_body("now()") == ast.Call("now", ())


def test_a_graph_is_a_list_of_triples_and_filters() -> None:
    graph = parse_body('GRAPH { _:H a :Sale ; :of ?1 , <urn:x> . ?1 :n "y"@EN ; :k "7"^^xsd:byte . FILTER (?1 < 4) }')
    home, one = ast.Blank("H"), Variable("1")
    assert graph == ast.Graph(
        (
            ast.Triple(home, ast.Name("rdf:type"), ast.Name(":Sale")),
            ast.Triple(home, ast.Name(":of"), one),
            ast.Triple(home, ast.Name(":of"), ast.Iri("urn:x")),
            ast.Triple(one, ast.Name(":n"), ast.Term("y", None, "en")),
            ast.Triple(one, ast.Name(":k"), ast.Term("7", ast.Name("xsd:byte"))),
        ),
        (ast.Compare("<", one, Literal(4)),),
    )


def test_the_tuple_notation_of_the_paper_means_three_triples_and_a_filter() -> None:
    tuples = parse_body(
        "GRAPH { (_:H, ?m, (Sale, price, Money)) . (?m, ?v, (Money, rdf:value, xsd:decimal), ?v < 400) }"
    )
    assert tuples == parse_body(
        "GRAPH { _:H a :Sale . _:H :price ?m . ?m a :Money . ?m a :Money . ?m rdf:value ?v . ?v a xsd:decimal ."
        " FILTER (?v < 400) }"
    )


def test_a_graph_may_be_homomorphic_and_may_name_its_column() -> None:
    graph = parse_body("GRAPH HOM doc.rdf { ?x :p 5 }")
    assert isinstance(graph, ast.Graph)
    assert graph.hom
    assert graph.column == Attribute(("doc", "rdf"))


def test_comments_in_a_graph_may_begin_with_a_hash() -> None:
    assert parse_body("GRAPH { _:H a :X # one\n . -- two\n }") == parse_body("GRAPH { _:H a :X }")


def test_graphs_calls_and_filters_mix() -> None:
    mixed = parse_body("GRAPH { _:H :p ?x } AND f(?x) AND price < 5 OR NOT GRAPH { _:H a :Y }")
    assert isinstance(mixed, ast.Or)
    assert len(mixed.items) == 2


# --------------------------------------------------------------- sequences


def test_next_joins_two_streams() -> None:
    pattern = parse_body("SELECT * FROM s AS l NEXT {$2.a = $1.a AND DUR < 30 MINUTES} t")
    theta = ast.And(
        (
            ast.Compare("=", Attribute(("a",), "$2"), Attribute(("a",), "$1")),
            ast.Compare("<", ast.Duration(), ast.Span(30, "MINUTE")),
        )
    )
    assert pattern == ast.Pattern((ast.Item(None),), ast.Next(ast.Stream("s", "l"), theta, ast.Stream("t")))


def test_fold_takes_theta_keep_and_aggregates() -> None:
    pattern = parse_body("SELECT n FROM s FOLD {a, $2.b < $.b, COUNT(*) AS n, SUM($2.b) AS t, $.k + 1 AS k INIT 0} s")
    assert isinstance(pattern, ast.Pattern)
    fold = pattern.source
    assert isinstance(fold, ast.Fold)
    assert fold.theta == A
    assert fold.keep == ast.Compare("<", Attribute(("b",), "$2"), Attribute(("b",), "$"))
    assert fold.aggregates == (
        ast.Aggregate("COUNT", None, "n"),
        ast.Aggregate("SUM", Attribute(("b",), "$2"), "t"),
        ast.Recurrence(ast.Arithmetic("+", Attribute(("k",), "$"), ONE), "k", Literal(0)),
    )


def test_fold_without_keep_keeps_everything() -> None:
    assert parse_body("SELECT * FROM s FOLD {a, COUNT(*) AS n} s") == parse_body(
        "SELECT * FROM s FOLD {a, TRUE, COUNT(*) AS n} s"
    )


def test_absent_has_a_window_of_time_or_ticks() -> None:
    for text, within in (
        ("SELECT * FROM s ABSENT {a} t WITHIN 5", Literal(5)),
        ("SELECT * FROM s ABSENT {a} t WITHIN 2 days", ast.Span(2, "DAY")),
    ):
        pattern = parse_body(text)
        assert isinstance(pattern, ast.Pattern)
        assert pattern.source == ast.Absent(ast.Stream("s"), A, ast.Stream("t"), within)


def test_steps_are_left_deep_unless_parentheses_say_otherwise() -> None:
    s, t, u = (ast.Stream(name) for name in "stu")
    left = parse_body("SELECT * FROM s NEXT t NEXT u")
    right = parse_body("SELECT * FROM s NEXT (t NEXT u)")
    assert isinstance(left, ast.Pattern)
    assert isinstance(right, ast.Pattern)
    assert left.source == ast.Next(ast.Next(s, ast.TRUE, t), ast.TRUE, u)
    assert right.source == ast.Next(s, ast.TRUE, ast.Next(t, ast.TRUE, u))


def test_filter_union_and_inner_patterns_may_have_an_alias() -> None:
    pattern = parse_body(
        "SELECT a AS b FROM FILTER {a} (s) AS f NEXT (s UNION t) AS u NEXT (SELECT * FROM s) AS p PUBLISH out"
    )
    assert isinstance(pattern, ast.Pattern)
    assert pattern.publish == "out"
    assert pattern.items == (ast.Item(A, "b"),)
    last = pattern.source
    assert isinstance(last, ast.Next)
    assert last.right == ast.Nested(ast.Pattern((ast.Item(None),), ast.Stream("s")), "p")
    assert isinstance(last.left, ast.Next)
    assert last.left.right == ast.Union(ast.Stream("s"), ast.Stream("t"), "u")
    assert last.left.left == ast.Filter(A, ast.Stream("s"), "f")


# -------------------------------------------------------------- statements


def test_a_stream_has_columns_with_defaults_a_time_and_a_template() -> None:
    (stream,) = parse_script(
        "CREATE STREAM s (a DOUBLE DEFAULT -1, b.c STRING NOT NULL, d array<string>, g GRAPH)"
        " TIME a, b.c AS GRAPH { _:H :p d };"
    )
    assert stream == ast.CreateStream(
        "s",
        (
            ast.ColumnDefinition(("a",), "DOUBLE", Literal(-1)),
            ast.ColumnDefinition(("b", "c"), "STRING", None, True),
            ast.ColumnDefinition(("d",), "ARRAY<STRING>"),
            ast.ColumnDefinition(("g",), "GRAPH"),
        ),
        (("a",), ("b", "c")),
        ast.Graph((ast.Triple(ast.Blank("H"), ast.Name(":p"), Attribute(("d",))),)),
    )


def test_the_other_statements_are_parsed() -> None:
    assert parse_script(
        """PREFIX : <http://example.org/>; PREFIX u-n: <#>;
        create ontology m from 'm.ttl';
        CREATE SUBSCRIPTION x ON s WITH (missing = 'strict', priority = -3) AS a;
        CREATE SUBSCRIPTION y AS SELECT * FROM s;
        DROP SUBSCRIPTION x; DROP ONTOLOGY m; DROP STREAM s"""
    ) == [
        ast.Prefix("", "http://example.org/"),
        ast.Prefix("u-n", "#"),
        ast.CreateOntology("m", "m.ttl"),
        ast.CreateSubscription(
            "x", "s", (ast.Option("missing", Literal("strict")), ast.Option("priority", Literal(-3))), A
        ),
        ast.CreateSubscription("y", None, (), ast.Pattern((ast.Item(None),), ast.Stream("s"))),
        ast.Drop("SUBSCRIPTION", "x"),
        ast.Drop("ONTOLOGY", "m"),
        ast.Drop("STREAM", "s"),
    ]


def test_an_empty_script_has_no_statements() -> None:
    assert parse_script(" ;; -- nothing\n ;") == []
