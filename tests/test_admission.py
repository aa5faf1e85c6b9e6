"""Admission: what `add` accepts builds and matches, what cannot be built is refused with its place and what to do."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import headgate as hg
from headgate.broker.settings import Settings
from headgate.broker.subscribing import Subscribing, Wanted
from headgate.cli.check import check
from headgate.errors import (
    BindingProblem,
    DuplicateName,
    LanguageError,
    LanguageErrors,
    LimitExceeded,
    SyntaxProblem,
    TypeProblem,
    UnknownName,
    UsageError,
)
from headgate.plan.segment import Family
from headgate.store import Store
from headgate.store.tickets import Tickets
from headgate.subscriptions import Subscriptions, admission

PREFIX = "PREFIX : <http://example.com/>;"
STREAM = "CREATE STREAM s (doc GRAPH, n BIGINT, b DOUBLE, at TIMESTAMP);"


@hg.operator
def same(event: Any, a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


@hg.operator
def holds(event: Any) -> bool:
    return True


@hg.operator
def given(event: Any, a: Any) -> bool:
    return a is not None


@hg.operator
def pair(event: Any, a: Any) -> list[tuple[Any]]:
    return [(event["n"],)]


OPERATORS = [same, holds, given, pair]


def book(script: str = "") -> Subscriptions:
    return Subscriptions.parse(script, OPERATORS)


def matches(subs: Subscriptions, *events: dict[str, Any]) -> list[str]:
    table, errors = subs.compile().match(list(events), errors="collect")
    assert errors.to_pylist() == []
    names: list[str] = table.column("subscription").to_pylist()
    return names


# -- every way in gives the same verdict

Way = Callable[[Subscriptions, str], object]


def _replace(subs: Subscriptions, text: str) -> None:
    subs.add("q", "n = 1", on="s").replace("q", text)


WAYS: dict[str, Way] = {
    "add": lambda subs, text: subs.add("q", text, on="s"),
    "replace": _replace,
    "extend": lambda subs, text: subs.extend(f"CREATE SUBSCRIPTION q ON s AS {text}"),
    "add_table": lambda subs, text: subs.add_table(pa.table({"id": ["q"], "text": [text]}), on="s"),
}
REFUSED: list[tuple[str, type[LanguageError], str, int]] = [
    ("GRAPH { _:H :p ?x . ?y :q ?x }", LanguageError, "?y cannot be reached from _:H", 21),
    ("GRAPH { :a :p ?x }", LanguageError, "the pattern does not mention the home vertex _:H", 9),
    ("GRAPH { _:H a ?c }", TypeProblem, "a class must be named", 15),
    ('GRAPH { _:H :p "abc"^^xsd:integer }', TypeProblem, "'abc' is no integer", 16),
    ('GRAPH { "x" :p ?y }', TypeProblem, "a literal cannot be the subject of a statement", 9),
    ("GRAPH { _:H ex:p ?y }", UnknownName, "there is no prefix ex:", 13),
    ("GRAPH { _:H :p n }", TypeProblem, "an attribute has no place in a GRAPH pattern", 16),
    ("GRAPH { _:H :p ?y . FILTER (?z > 1) }", BindingProblem, "?z does not occur in the statements of this GRAPH", 29),
    ("GRAPH doc2 { _:H :p ?x }", UnknownName, "stream s has no attribute doc2", 7),
    ("GRAPH n { _:H :p ?x }", TypeProblem, "GRAPH needs a GRAPH column, this is BIGINT", 7),
    ("n = 1 AND GRAPH { _:H a ?c }", TypeProblem, "a class must be named", 25),
    ("n = 'x'", TypeProblem, "STRING cannot be compared with BIGINT", 5),
    ("no = 1", UnknownName, "stream s has no attribute no", 1),
    ("CREATE STREAM t (a BIGINT)", SyntaxProblem, "this is a statement, not the body of a subscription", 1),
    ("DROP STREAM s", SyntaxProblem, "this is a statement, not the body of a subscription", 1),
    ("NOT SELECT n FROM s", SyntaxProblem, "'SELECT' does not fit here", 5),
    ("(SELECT n FROM s)", SyntaxProblem, "'SELECT' does not fit here", 2),
    ("n = 1 AND SELECT n FROM s", SyntaxProblem, "'SELECT' does not fit here", 11),
    ("n = 1 OR NOT DROP STREAM s", SyntaxProblem, "'DROP' does not fit here", 14),
    ("n = 1 AND b > 'a\0b'", SyntaxProblem, "the character NUL has no place in a text", 15),
    ("`n\0` = 1", SyntaxProblem, "the character NUL has no place in a text", 1),
    (".".join(["n"] * 3000) + " = 1", LimitExceeded, "a name has more than 64 parts", 1),
    ("n < 1e308 WEEKS", TypeProblem, "this length of time is beyond 64 bits of microseconds", 5),
    ("nobody(n)", UnknownName, "there is no operator nobody", 1),
    ("given(?x) AND ?y > 1", BindingProblem, "nothing binds ?y here", 15),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("text", "kind", "message", "column"), REFUSED, ids=[t[0][:40].replace("\0", "~") for t in REFUSED]
)
def test_what_cannot_be_built_is_refused_with_its_place(
    way: str, text: str, kind: type[LanguageError], message: str, column: int
) -> None:
    subs = book(PREFIX + STREAM)
    with pytest.raises((LanguageError, LanguageErrors)) as caught:
        WAYS[way](subs, text)
    problem = caught.value.errors[0] if isinstance(caught.value, LanguageErrors) else caught.value
    assert type(problem) is kind
    assert message in problem.message
    assert problem.place is not None
    head = len("CREATE SUBSCRIPTION q ON s AS ") if way == "extend" else 0
    assert problem.place.column == head + column
    assert matches(subs.add("other", "n = 1", on="s"), {"n": 1}) == (["other", "q"] if way == "replace" else ["other"])


WITHOUT_OPERATORS = [case for case in REFUSED if "given" not in case[0]]


@pytest.mark.parametrize(("text", "kind", "message", "column"), WITHOUT_OPERATORS)
def test_the_command_line_says_what_the_book_says(
    tmp_path: Path, text: str, kind: type[LanguageError], message: str, column: int
) -> None:
    rules = tmp_path / "rules.hg"
    rules.write_text(f"{PREFIX}{STREAM}\nCREATE SUBSCRIPTION q ON s AS\n{text};")
    shown = CliRunner().invoke(check, [str(rules), "--json"])
    assert shown.exit_code == 1
    first = json.loads(shown.stdout.splitlines()[0])
    assert first["code"] == kind.code
    assert message in first["message"]
    assert (first["line"], first["column"]) == (3, column)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GRAPH { _:H a ?c }", "a class must be named"),
        ("GRAPH doc2 { _:H rdf:value ?x }", "stream s has no attribute doc2"),
        ("NOT SELECT n FROM s", "'SELECT' does not fit here"),
        ("n = 'a\0b'", "the character NUL has no place in a text"),
        ("n = 'x'", "STRING cannot be compared with BIGINT"),
    ],
)
def test_a_store_and_its_broker_say_what_the_book_says(tmp_path: Path, text: str, message: str) -> None:
    store = Store(tmp_path / "book.db")
    version = store.stream("s", {"doc": "graph", "n": "bigint"})
    subscribing = Subscribing(
        store, Tickets(store.database, b"secret"), Settings(store.url, tmp_path, b"secret", engine="local")
    )
    with pytest.raises(LanguageError, match=re.escape(message)):
        store.add("q", text, on="s")
    with pytest.raises(LanguageError, match=re.escape(message)):
        subscribing.subscribe([Wanted(text, "s")], None)
    found = subscribing.check(text, "s", "null")
    assert isinstance(found, LanguageError)
    assert message in found.message
    assert (store.version, list(store.book())) == (version, [])


def test_a_prefix_that_is_nearly_one_gets_a_hint() -> None:
    with pytest.raises(UnknownName) as caught:
        book(PREFIX + STREAM).add("q", "GRAPH { _:H a rdfx:Y }")
    assert caught.value.hint == "did you mean rdf?"


def test_a_graph_on_a_stream_without_one_is_refused() -> None:
    with pytest.raises(LanguageError, match="which graph of the event") as caught:
        book().add("q", "GRAPH { _:H rdf:value ?x }")
    assert caught.value.place is not None
    assert "GRAPH column" in caught.value.hint


def test_a_graph_column_that_nobody_declared_is_read_as_rdf() -> None:
    subs = book().add("q", "GRAPH doc { _:H rdf:value 5 }")
    doc = "_:H <http://www.w3.org/1999/02/22-rdf-syntax-ns#value> 5 ."
    assert matches(subs, {"doc": doc}) == ["q"]


# -- bodies that read no attribute

NO_ATTRIBUTES = [
    ("TRUE", True),
    ("FALSE", False),
    ("NULL", False),
    ("NOT FALSE", True),
    ("1 < 2", True),
    ("holds()", True),
    ("NOT holds()", False),
    ("given(NULL)", False),
    ("NOT given(NULL)", False),
    ("given(NULL) OR holds()", True),
    ("same(NULL, 1) OR TRUE", True),
]


@pytest.mark.parametrize("script", ["", STREAM], ids=["undeclared", "declared"])
@pytest.mark.parametrize(("text", "expected"), NO_ATTRIBUTES)
def test_a_body_that_reads_no_attribute_matches_on_any_stream(script: str, text: str, expected: bool) -> None:
    subs = book(script).add("q", text)
    assert matches(subs, {"n": 1}, {}) == ["q"] * (2 if expected else 0)


def test_an_operator_is_not_called_with_a_missing_argument() -> None:
    asked: list[Any] = []

    def ask(event: Any, a: Any) -> bool:
        asked.append(a)
        return True

    subs = Subscriptions([hg.operator(ask)]).add("q", "ask(NULL)").add("r", "ask(x)")
    assert matches(subs, {"x": None}, {"x": 3}) == ["r"]
    assert asked == [3]


# -- attributes of streams that nobody declared


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (3, 3, 1),
        (3, 4, 0),
        ("a", "a", 1),
        (1, 1.0, 0),
        ([1, 2], [1, 2], 1),
        ({"k": [1]}, {"k": [1]}, 1),
        (b"1", b"2", 0),
    ],
)
def test_an_operator_receives_the_value_of_an_attribute_without_a_type(x: Any, y: Any, expected: int) -> None:
    assert len(matches(book().add("q", "same(x, y)"), {"x": x, "y": y})) == expected


def test_an_operator_receives_the_value_of_an_arrow_column_without_a_type() -> None:
    subs = book().add("q", "same(x, 'a')")
    table = pa.table({"x": ["a", "b", None]})
    assert subs.compile().match(table).column("event").to_pylist() == [0]


def test_an_attribute_that_is_only_asked_for_null_takes_any_value() -> None:
    subs = book().add("q", "x IS NULL")
    assert matches(subs, {"x": {"k": 1}}, {"x": [1]}, {"x": "a"}, {}) == ["q"]


def test_a_length_of_time_is_a_number_of_microseconds() -> None:
    assert matches(book().add("q", "x < 5 MINUTES"), {"x": 299_999_999}, {"x": 300_000_000}) == ["q"]


X = {"a": "x", "b": "x", "c": "x", "tags": ["x"]}


@pytest.mark.parametrize(
    "text",
    [
        "a = b AND a = 'x'",
        "a = 'x' AND a = b",
        "a = b AND b = c AND c = 'x'",
        "c = 'x' AND b = c AND a = b",
        "NOT (a <> b) AND (a = 'x' OR b = 'x')",
        "a IN (b, c) AND LOWER(a) = 'x'",
        "a BETWEEN b AND c AND c STARTS WITH 'x'",
        "a < 'y' AND a >= b AND b = c",
        "ALL(tags) = b AND b = a AND a = 'x'",
    ],
)
def test_attributes_may_be_compared_with_each_other_and_with_constants(text: str) -> None:
    assert matches(book().add("q", text), X, {**X, "a": "y", "b": "z"}) == ["q"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = b AND a = 'x' AND b <> 5", ["q"]),
        ("a < b OR a = TRUE", []),
        ("a = b AND b = c", ["q"]),
        ("a = b AND b > 5 AND a LIKE 'x%'", []),
    ],
)
def test_attributes_of_an_undeclared_stream_are_compared_as_what_they_hold(text: str, expected: list[str]) -> None:
    assert matches(book().add("q", text), X) == expected


def test_a_long_body_is_checked_in_linear_time() -> None:
    chain = " AND ".join(f"a{i} = a{i + 1}" for i in range(3000)) + " AND a3000 = 'x'"
    begun = time.perf_counter()
    book().add("q", chain)
    assert time.perf_counter() - begun < 10


def test_a_stream_whose_subscriptions_speak_of_too_many_attributes_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "ATTRIBUTES", 3)
    subs = book().add("q", "a = 1 AND b = 2").add("r", "c = 3")
    with pytest.raises(LimitExceeded, match="speak of more than 3 attributes") as caught:
        subs.add("t", "a = 1 AND d = 4")
    assert caught.value.place is not None
    assert caught.value.place.column == 11
    assert matches(subs, {"a": 1, "b": 2, "c": 3, "d": 4}) == ["q", "r"]


# -- what a book keeps of a text


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("n = 1", Family.FILTER),
        ("TRUE", Family.FILTER),
        ("n = 1 OR given(n)", Family.LATE),
        ("GRAPH { _:H :p 1 }", Family.LATE),
        ("SELECT n FROM s", Family.SEQUENCE),
        ("-- a comment\nselect n FROM s", Family.SEQUENCE),
    ],
)
def test_the_family_of_a_text_is_told_once(text: str, family: Family) -> None:
    subs = book(PREFIX + STREAM).add("q", text)
    assert subs["q"].family is family
    assert subs.check(text) is family
    segment, slot = subs.compile().find("q") or pytest.fail("q is not in the plan")
    assert segment.entry(slot).family is family


def test_a_check_says_what_add_would_say_and_changes_nothing() -> None:
    subs = book().add("q", "x = 1")
    assert subs.check("y = 'a'") is Family.FILTER
    assert subs.check("y = 5") is Family.FILTER
    with pytest.raises(TypeProblem, match="BOOLEAN has no order"):
        subs.check("x < TRUE")
    assert matches(subs.add("r", "y = 'b'"), {"x": 1.0, "y": "b"}) == ["q", "r"]


def test_a_text_of_a_known_form_is_not_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    subs = book(STREAM).add("q", "n = 1 AND given(n)").add("r", "n = 1 OR b < 2")
    for name in ("check_filter", "build_alone", "compile_late"):
        monkeypatch.setattr(admission, name, lambda *_: pytest.fail("it is built again"))
    subs.add("t", "n = 7 AND NOT b < 9")
    with pytest.raises(pytest.fail.Exception):
        subs.add("u", "b < 2 + 3")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('GRAPH { _:H :p "5"^^xsd:integer }', 'GRAPH { _:H :p "abc"^^xsd:integer }', "'abc' is no integer"),
        ("name MATCHES 'a+'", "name MATCHES '('", "the regular expression is refused"),
        ("at > TIMESTAMP '2026-01-01'", "at > TIMESTAMP '2026-13-01'", "is no time"),
        ("n + 1 > 2", "n + 99999999999999999999 > 2", "is beyond BIGINT"),
        ("name LIKE 'a!%' ESCAPE '!'", "name LIKE 'a!b' ESCAPE '!'", "the escape character escapes nothing here"),
        ("n < 5 DAYS", "n < 1e300 DAYS", "beyond 64 bits of microseconds"),
        ("GRAPH { _:H :p ?x . FILTER (?x MATCHES 'a') }", "GRAPH { _:H :p ?x . FILTER (?x MATCHES '(') }", "refused"),
    ],
)
def test_a_wrong_literal_in_a_known_form_is_refused(right: str, wrong: str, message: str) -> None:
    subs = book(PREFIX + STREAM.replace("n BIGINT", "n BIGINT, name STRING")).add("q", right)
    with pytest.raises(LanguageError, match=message) as caught:
        subs.add("r", wrong)
    assert caught.value.place is not None
    subs.add("t", right).compile()


def test_a_stream_that_is_declared_after_all_forgets_what_was_learned() -> None:
    subs = book().add("q", "x = 'a'").remove("q")
    subs.extend("CREATE STREAM events (x BIGINT);")
    with pytest.raises(TypeProblem, match="STRING cannot be compared with BIGINT"):
        subs.add("q", "x = 'b'")


# -- depth

DEEP: dict[str, Callable[[int], str]] = {
    "minus": lambda n: "n < " + "- " * n + "1",
    "minus on an attribute": lambda n: "- " * n + "n < 1",
    "not": lambda n: "NOT " * n + "n = 1",
    "parentheses": lambda n: "(" * n + "n = 1" + ")" * n,
    "parentheses around a number": lambda n: "n = " + "(" * n + "1" + ")" * n,
    "functions": lambda n: "ABS(" * n + "n" + ")" * n + " = 1",
    "functions of a constant": lambda n: "n = " + "ABS(" * n + "1" + ")" * n,
    "sums": lambda n: "n = 1" + " + n" * n,
    "nested sums": lambda n: "n = " + "(n + " * (n // 2) + "1" + ")" * (n // 2),
    "constants": lambda n: "n = " + "(1 + " * (n // 2) + "1" + ")" * (n // 2),
    "and within or": lambda n: "(n = 1 AND (n = 2 OR " * (n // 4) + "n = 3" + "))" * (n // 4),
    "not over a call": lambda n: "NOT " * n + "given(n)",
    "parentheses around a call": lambda n: "(" * n + "given(n)" + ")" * n,
    "graph filter": lambda n: "GRAPH { _:H :p ?x . FILTER (" + "- " * (n - 5) + "?x < 1) }",
    "variable": lambda n: "pair(?x) AND ?x < " + "- " * (n - 5) + "1",
}


@pytest.mark.parametrize("what", DEEP)
def test_depth_costs_no_more_than_length(what: str) -> None:
    subs = book(PREFIX + STREAM)
    begun = time.perf_counter()
    subs.add("q", DEEP[what](190))
    subs.compile().match([{"n": 1}], errors="collect")
    assert time.perf_counter() - begun < 5
    with pytest.raises(LimitExceeded, match="nested more than 200 levels deep"):
        subs.add("r", DEEP[what](2000))


def test_sixty_minus_signs_fold_at_once() -> None:
    begun = time.perf_counter()
    subs = book(STREAM).add("q", "n < " + "- " * 60 + "1")
    assert matches(subs, {"n": 0}, {"n": 1}) == ["q"]
    assert time.perf_counter() - begun < 2


@pytest.mark.parametrize("name", ["a\0b", "\0"])
def test_a_name_holds_no_nul(name: str) -> None:
    with pytest.raises(UsageError, match="NUL"):
        book().add(name, "n = 1")
    with pytest.raises(UsageError, match="NUL"):
        book().stream(name, {"n": "bigint"})


# -- definitions

TTL = (
    "@prefix : <http://example.com/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :A rdfs:subClassOf :B ."
)


def scripted(folder: Path, script: str, **files: str) -> Subscriptions:
    for name, text in files.items():
        (folder / f"{name}.ttl").write_text(text)
    (folder / "rules.hg").write_text(script)
    return Subscriptions.load(folder / "rules.hg", OPERATORS)


@pytest.mark.parametrize(
    "text",
    ["this is no turtle", ":A a :B .", "@prefix : <http://x/> . :A :p unknown:B ."],
    ids=["no turtle", "no prefix at all", "an unknown prefix"],
)
def test_an_ontology_that_cannot_be_parsed_is_refused_when_it_is_defined(tmp_path: Path, text: str) -> None:
    with pytest.raises(LanguageErrors) as caught:
        scripted(tmp_path, "CREATE ONTOLOGY o FROM 'o.ttl';", o=text)
    (problem,) = caught.value.errors
    assert "the ontology o.ttl cannot be read: the text is not turtle" in problem.message
    assert problem.place is not None


def test_an_ontology_may_be_defined_again_as_it_was(tmp_path: Path) -> None:
    script = f"{PREFIX}{STREAM}CREATE ONTOLOGY o FROM 'o.ttl';CREATE SUBSCRIPTION q ON s AS GRAPH {{ _:H a :B }};"
    subs = scripted(tmp_path, script + "CREATE ONTOLOGY o FROM 'o.ttl';", o=TTL)
    assert matches(subs, {"doc": "_:H a <http://example.com/A> ."}) == ["q"]


def test_a_second_ontology_of_a_name_may_not_change_what_a_subscription_means(tmp_path: Path) -> None:
    script = f"{PREFIX}{STREAM}CREATE ONTOLOGY o FROM 'o.ttl';CREATE SUBSCRIPTION q ON s AS GRAPH {{ _:H a :B }};"
    with pytest.raises(LanguageErrors) as caught:
        scripted(tmp_path, script + "CREATE ONTOLOGY o FROM 'other.ttl';", o=TTL, other=TTL.replace(":B", ":C"))
    (problem,) = caught.value.errors
    assert isinstance(problem, DuplicateName)
    assert problem.message == "there is an ontology o already, and subscription q depends on it"
    assert problem.place is not None


def test_a_second_ontology_of_a_name_is_a_duplicate_also_while_nobody_depends_on_it(tmp_path: Path) -> None:
    script = f"{PREFIX}{STREAM}CREATE ONTOLOGY o FROM 'o.ttl';"
    with pytest.raises(LanguageErrors) as refused:
        scripted(tmp_path, script + "CREATE ONTOLOGY o FROM 'other.ttl';", o=TTL, other=TTL.replace(":B", ":C"))
    (problem,) = refused.value.errors
    assert (problem.code, problem.message) == ("duplicate", "there is an ontology o already")
    dropped = "DROP ONTOLOGY o; CREATE ONTOLOGY o FROM 'other.ttl';"
    subs = scripted(tmp_path, script + dropped, o=TTL, other=TTL.replace(":B", ":C"))
    subs.add("b", "GRAPH { _:H a :B }").add("c", "GRAPH { _:H a :C }")
    assert matches(subs, {"doc": "_:H a <http://example.com/A> ."}) == ["c"]


def test_a_prefix_that_a_subscription_uses_cannot_mean_something_else() -> None:
    subs = book(PREFIX + STREAM).add("q", "GRAPH { _:H :p 1 }")
    with pytest.raises(LanguageErrors) as caught:
        subs.extend("PREFIX : <http://other.org/>;")
    (problem,) = caught.value.errors
    assert isinstance(problem, DuplicateName)
    assert problem.message == "the prefix : is <http://example.com/> already, and subscription q uses it"
    assert matches(subs.extend(PREFIX), {"doc": "_:H <http://example.com/p> 1 ."}) == ["q"]


def test_a_prefix_that_a_template_uses_cannot_mean_something_else() -> None:
    subs = book(f"{PREFIX} CREATE STREAM t (n BIGINT) AS GRAPH {{ _:H :p n }};")
    with pytest.raises(LanguageErrors, match="and stream t uses it"):
        subs.extend("PREFIX : <http://other.org/>;")


def test_a_prefix_that_nobody_uses_may_be_defined_again() -> None:
    subs = book(f"{PREFIX} PREFIX x: <http://x.org/>; {STREAM}").add("q", "GRAPH { _:H x:p 1 }")
    subs.extend("PREFIX : <http://other.org/>;").add("r", "GRAPH { _:H :p 1 }")
    assert matches(subs, {"doc": "_:H <http://x.org/p> 1 ; <http://other.org/p> 1 ."}) == ["q", "r"]


def test_a_template_is_built_when_its_stream_is_declared() -> None:
    with pytest.raises(LanguageErrors) as caught:
        book("CREATE STREAM t (n BIGINT) AS GRAPH { _:H nobody:p n };")
    (problem,) = caught.value.errors
    assert isinstance(problem, UnknownName)
    assert problem.place is not None


def test_a_template_reads_attributes_of_its_stream() -> None:
    with pytest.raises(LanguageErrors, match="stream t has no attribute m"):
        book(f"{PREFIX} CREATE STREAM t (n BIGINT) AS GRAPH {{ _:H :p m }};")


@pytest.mark.parametrize("statement", ["DROP STREAM s;", "CREATE STREAM s (n BIGINT);"])
def test_a_stream_that_a_sequence_reads_stays_as_it_is(statement: str) -> None:
    subs = book(STREAM + "CREATE STREAM t (m BIGINT);").add("q", "SELECT n FROM s")
    with pytest.raises(LanguageErrors, match="stream s is"):
        subs.extend(statement)
    assert subs.compile().streams == ("s",)


def test_a_default_beyond_64_bits_is_refused() -> None:
    with pytest.raises(hg.LanguageErrors, match="beyond 64 bits"):
        hg.Subscriptions.parse("CREATE STREAM t (n BIGINT DEFAULT 9223372036854775808);")
    assert len(hg.Subscriptions.parse("CREATE STREAM t (x DOUBLE DEFAULT 9223372036854775808);").streams) == 1
