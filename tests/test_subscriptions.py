"""The book: what may be in it, what it refuses and how it says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from headgate import LanguageErrors, SchemaError, Subscriptions, UsageError
from headgate.errors import DuplicateName, LanguageError, LimitExceeded, SyntaxProblem, TypeProblem, UnknownName
from headgate.schema import Schema
from headgate.sequences import admission, scopes

STOCK = {"name": "string", "price": "double", "vol": "bigint"}
IBM = {"name": "IBM", "price": 50.0, "vol": 10}


def stock() -> Subscriptions:
    return Subscriptions().stream("stock", STOCK)


def matched(book: Subscriptions, *events: Any) -> list[str]:
    names: list[str] = book.compile().match(list(events)).column("subscription").to_pylist()
    return names


def refused(kind: type[Exception], message: str, hint: str, action: Any, *arguments: Any, **more: Any) -> None:
    with pytest.raises(kind) as caught:
        action(*arguments, **more)
    assert caught.type is kind
    problem: Any = caught.value
    assert (problem.message, problem.hint) == (message, hint)


# -- the life of a subscription


def test_an_added_subscription_matches() -> None:
    assert matched(stock().add("cheap", "name = 'IBM' AND price < 100"), IBM) == ["cheap"]


def test_calls_can_be_chained() -> None:
    book = stock().add("a", "vol > 1").add("b", "vol > 2").pause("a").resume("a").replace("b", "vol > 3").remove("a")
    assert list(book) == ["b"]


def test_a_book_knows_its_size_and_its_names() -> None:
    book = stock().add("a", "vol > 1").add("b", "vol > 2")
    assert (len(book), list(book), "a" in book, "c" in book) == (2, ["a", "b"], True, False)


def test_an_entry_shows_what_was_added() -> None:
    entry = stock().add("a", "vol > 1", missing="strict", labels={"owner": "me"})["a"]
    assert (entry.text, entry.stream, entry.missing, entry.labels) == ("vol > 1", "stock", "strict", {"owner": "me"})


def test_a_replaced_subscription_has_the_new_text_and_keeps_the_rest() -> None:
    book = stock().add("a", "vol > 100", missing="strict", labels={"owner": "me"}).replace("a", "vol > 1")
    assert matched(book, IBM) == ["a"]
    assert (book["a"].missing, book["a"].labels) == ("strict", {"owner": "me"})


def test_replace_can_change_the_mode_and_the_labels() -> None:
    book = stock().add("a", "vol > 1").replace("a", "vol > 1", missing="total", labels={"k": "v"})
    assert (book["a"].missing, book["a"].labels) == ("total", {"k": "v"})


def test_a_removed_subscription_is_gone() -> None:
    book = stock().add("a", "vol > 1").add("b", "vol > 1").remove("a")
    assert matched(book, IBM) == ["b"]


def test_a_paused_subscription_stays_in_the_book_and_matches_nothing() -> None:
    book = stock().add("a", "vol > 1").pause("a")
    assert "a" in book
    assert matched(book, IBM) == []
    assert matched(book.resume("a"), IBM) == ["a"]


def test_a_paused_subscription_stays_paused_when_it_is_replaced() -> None:
    book = stock().add("a", "vol > 1").pause("a").replace("a", "vol > 2")
    assert matched(book, IBM) == []
    assert matched(book.resume("a"), IBM) == ["a"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("", "vol > 1", "the name of a subscription cannot be ''"),
        (5, "vol > 1", "the name of a subscription cannot be 5"),
        ("a", None, "the text of a subscription cannot be None"),
        ("a", "", "the text of a subscription cannot be ''"),
    ],
)
def test_a_name_and_a_text_are_texts(name: Any, text: Any, message: str) -> None:
    refused(UsageError, message, f"give a {message.split()[1]} in a str", stock().add, name, text)


def test_a_replacement_that_is_refused_leaves_the_old_one() -> None:
    book = stock().add("a", "vol > 1")
    with pytest.raises(UnknownName):
        book.replace("a", "volume > 1")
    assert (book["a"].text, matched(book, IBM)) == ("vol > 1", ["a"])


def test_labels_travel_into_matches() -> None:
    book = stock().add("a", "vol > 1", labels={"owner": "desk 4", "ä": '"'})
    assert book.compile().match([IBM]).column("labels").to_pylist() == ['{"owner":"desk 4","ä":"\\""}']


def test_a_name_is_taken_only_once() -> None:
    book = stock().add("a", "vol > 1")
    refused(DuplicateName, "there is a subscription a already", "use replace to change it", book.add, "a", "vol > 2")


@pytest.mark.parametrize("action", ["remove", "pause", "resume", "__getitem__"])
def test_an_unknown_name_gets_a_hint(action: str) -> None:
    book = stock().add("cheap", "vol > 1")
    refused(UnknownName, "there is no subscription chaep", "did you mean cheap?", getattr(book, action), "chaep")
    refused(UnknownName, "there is no subscription x", "list the book to see all", getattr(book, action), "x")


def test_replace_needs_a_subscription() -> None:
    refused(UnknownName, "there is no subscription x", "list the book to see all", stock().replace, "x", "vol > 1")


def test_an_unknown_mode_is_refused() -> None:
    message, hint = "missing = 'zero' is no mode", "the modes are null, strict, default, total"
    refused(UsageError, message, hint, stock().add, "a", "vol > 1", missing="zero")


# -- what a text may say


def test_a_bad_text_is_refused_with_its_place_and_changes_nothing() -> None:
    book = stock()
    with pytest.raises(UnknownName) as caught:
        book.add("a", "vol > 1 AND prize < 5")
    assert str(caught.value) == (
        "line 1, column 13: stream stock has no attribute prize\n"
        "  vol > 1 AND prize < 5\n              ^^^^^\n  hint: did you mean price?"
    )
    assert len(book) == 0


def test_several_mistakes_of_one_text_are_raised_together() -> None:
    with pytest.raises(LanguageErrors) as caught:
        stock().add("a", "name > 5 OR prize < 5")
    assert [type(e) for e in caught.value.errors] == [TypeProblem, UnknownName]


def test_a_mistake_is_found_again_after_a_sound_text_of_the_same_form() -> None:
    book = stock().add("a", "vol > 1")
    with pytest.raises(TypeProblem, match="STRING cannot be compared with BIGINT"):
        book.add("b", "vol > 'x'")


def test_a_text_of_nothing_but_spaces_is_refused() -> None:
    with pytest.raises(SyntaxProblem, match="the text is empty"):
        stock().add("a", "  ")


def test_a_text_beyond_the_limits_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="nested"):
        stock().add("a", "(" * 10_000 + "vol > 1" + ")" * 10_000)


# -- streams


def test_a_stream_may_be_given_as_a_schema() -> None:
    book = Subscriptions().stream("ticks", Schema.of("stock", STOCK))
    assert (list(book.streams), book.streams["ticks"].stream) == (["ticks"], "ticks")


def test_a_stream_is_declared_once() -> None:
    refused(DuplicateName, "stream stock is declared already", "drop it first", stock().stream, "stock", STOCK)


def test_a_stream_cannot_be_declared_after_its_first_use() -> None:
    book = Subscriptions().add("a", "vol > 1", on="stock")
    message, hint = (
        "stream stock is in use without a declaration",
        "declare a stream before the first subscription on it",
    )
    refused(DuplicateName, message, hint, book.stream, "stock", STOCK)


def test_the_only_declared_stream_needs_no_naming() -> None:
    assert stock().add("a", "vol > 1")["a"].stream == "stock"


def test_of_several_streams_one_must_be_named() -> None:
    book = stock().stream("news", {"text": "string"})
    refused(UnknownName, "which stream?", "say ON one of stock, news", book.add, "a", "vol > 1")
    assert book.add("a", "text CONTAINS 'x'", on="news")["a"].stream == "news"


def test_an_unknown_stream_gets_a_hint() -> None:
    message, hint = "there is no stream stok", "did you mean stock?"
    refused(UnknownName, message, hint, stock().add, "a", "vol > 1", on="stok")


def test_without_declarations_a_stream_exists_by_being_named() -> None:
    book = Subscriptions().add("a", "vol > 1", on="x").add("b", "vol > 1", on="y").add("c", "vol > 1")
    assert [book[n].stream for n in book] == ["x", "y", "events"]


def test_an_undeclared_stream_has_the_attributes_that_texts_mention_of_the_type_any() -> None:
    book = Subscriptions().add("a", "vol > 1 AND name = 'x'").add("b", "at IS NULL").add("c", "vol = 'x'")
    assert {a.name: a.type for a in book.streams["events"]} == {"vol": None, "name": None, "at": None}


def test_what_a_refused_text_mentions_is_not_noted() -> None:
    book = Subscriptions()
    with pytest.raises(TypeProblem):
        book.add("a", "vol < TRUE")
    assert "events" not in book.streams


def test_the_mode_total_needs_a_declared_stream() -> None:
    message, hint = "missing = 'total' needs to know the stream events", "declare it with CREATE STREAM"
    refused(TypeProblem, message, hint, Subscriptions().add, "a", "vol > 1", missing="total")


def test_a_schema_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(SchemaError, match="unknown type 'numbr'"):
        Subscriptions().stream("s", {"x": "numbr"})


# -- scripts

SCRIPT = """
CREATE STREAM stock (name STRING, price DOUBLE DEFAULT -1, vol BIGINT);
CREATE SUBSCRIPTION cheap ON stock WITH (missing = 'default', owner = 'desk 4') AS price < 100; -- a comment
CREATE SUBSCRIPTION big ON stock AS vol > 500;
"""


def test_a_script_makes_a_book() -> None:
    book = Subscriptions.parse(SCRIPT)
    assert list(book) == ["cheap", "big"]
    cheap = book["cheap"]
    assert (cheap.text, cheap.missing, cheap.labels) == ("price < 100", "default", {"owner": "desk 4"})
    assert matched(book, {"vol": 501}) == ["big", "cheap"]


def test_a_script_is_loaded_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "rules.hg").write_text(SCRIPT)
    assert list(Subscriptions.load(tmp_path / "rules.hg")) == ["cheap", "big"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    refused(UsageError, f"cannot read {tmp_path}: Is a directory", "", Subscriptions.load, tmp_path)
    (tmp_path / "x.hg").write_bytes(b"\xff")
    refused(UsageError, f"{tmp_path}/x.hg is not UTF-8 text", "", Subscriptions.load, tmp_path / "x.hg")


def test_all_mistakes_of_a_script_are_raised_and_the_sound_statements_run() -> None:
    book = stock()
    with pytest.raises(LanguageErrors) as caught:
        book.extend(
            "CREATE SUBSCRIPTION a ON stock AS vol > ;\n"
            "CREATE SUBSCRIPTION b ON stock AS vol > 1;\n"
            "CREATE SUBSCRIPTION c ON stock WITH (missing = 'zero') AS vol > 1;\n"
            "CREATE SUBSCRIPTION d ON stock WITH (owner = 5) AS vol > 1;\n"
            "CREATE STREAM e (x NUMBR);\n"
            "CREATE SUBSCRIPTION b ON stock AS vol > 2;\n"
        )
    problems = [(type(e), e.place and (e.place.line, e.place.column), e.message) for e in caught.value.errors]
    assert problems == [
        (SyntaxProblem, (1, 40), "the text ends too early"),
        (TypeProblem, (3, 48), "'zero' is no mode"),
        (TypeProblem, (4, 46), "the label owner must be a text"),
        (TypeProblem, (5, 20), "unknown type 'NUMBR'"),
        (DuplicateName, (6, 21), "there is a subscription b already"),
    ]
    assert list(book) == ["b"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE STREAM s (x BIGINT, x DOUBLE)", "column x is declared twice"),
        ("CREATE STREAM s (x BIGINT DEFAULT 'a')", "the DEFAULT does not fit BIGINT"),
        ("CREATE STREAM s (x BIGINT DEFAULT TRUE)", "the DEFAULT does not fit BIGINT"),
        ("CREATE STREAM s (x BIGINT) TIME y", "the TIME attribute y is not declared"),
        ("CREATE STREAM s (x STRING) TIME x", "stream s: the TIME attribute x is STRING"),
    ],
)
def test_a_stream_that_makes_no_sense_is_refused_in_a_script(statement: str, message: str) -> None:
    with pytest.raises(LanguageErrors) as caught:
        Subscriptions.parse(statement)
    (problem,) = caught.value.errors
    assert problem.message == message
    assert problem.place is not None


def test_drop_takes_away() -> None:
    book = Subscriptions.parse(SCRIPT + "DROP SUBSCRIPTION cheap; DROP SUBSCRIPTION big; DROP STREAM stock;")
    assert (list(book), list(book.streams)) == ([], [])


AGAIN = "DROP SUBSCRIPTION cheap; DROP SUBSCRIPTION big; DROP STREAM stock; CREATE STREAM stock (vol STRING);"


def test_a_stream_that_comes_back_with_other_types_is_checked_anew() -> None:
    book = Subscriptions.parse(SCRIPT)
    with pytest.raises(LanguageErrors, match="BIGINT cannot be compared with STRING"):
        book.extend(AGAIN + "CREATE SUBSCRIPTION big ON stock AS vol > 500;")


def test_a_stream_that_comes_back_with_other_types_is_compiled_anew() -> None:
    book = Subscriptions.parse(SCRIPT)
    book.compile()
    book.extend(AGAIN + "CREATE SUBSCRIPTION many ON stock AS vol = 'many';")
    assert matched(book, {"vol": "many"}) == ["many"]


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("DROP SUBSCRIPTION chep", "there is no subscription chep", "did you mean cheap?"),
        ("DROP STREAM stok", "there is no stream stok", "did you mean stock?"),
        ("DROP ONTOLOGY o", "there is no ontology o", ""),
        ("DROP STREAM stock", "stream stock is in use by subscription cheap", "drop its subscriptions first"),
    ],
)
def test_a_drop_that_cannot_be_is_refused(statement: str, message: str, hint: str) -> None:
    book = Subscriptions.parse(SCRIPT)
    with pytest.raises(LanguageErrors) as caught:
        book.extend(statement)
    (problem,) = caught.value.errors
    assert (problem.message, problem.hint) == (message, hint)
    assert len(book) == 2


# -- tables

ROWS = {"id": ["a", "b"], "rule": ["vol > 1", "vol > 100"]}


@pytest.mark.parametrize("table", [pa.table(ROWS), pd.DataFrame(ROWS)], ids=["arrow", "pandas"])
def test_a_book_is_made_from_a_table(table: Any) -> None:
    book = Subscriptions.from_table(table, id="id", text="rule", on="stock")
    assert [(n, book[n].text, book[n].stream) for n in book] == [("a", "vol > 1", "stock"), ("b", "vol > 100", "stock")]


def test_a_table_is_added_to_a_book_with_a_mode() -> None:
    book = stock().add_table(pa.table(ROWS), text="rule", missing="strict")
    assert [book[n].missing for n in book] == ["strict", "strict"]


def test_ids_that_are_numbers_become_names() -> None:
    assert list(Subscriptions.from_table(pa.table({"id": [7], "text": ["vol > 1"]}))) == ["7"]


def test_a_table_without_the_column_is_refused() -> None:
    message, hint = "the table has no column text", "it has id, rule"
    refused(SchemaError, message, hint, Subscriptions.from_table, pa.table(ROWS))


@pytest.mark.parametrize("column", ["id", "rule"])
def test_a_row_without_an_id_or_a_text_is_refused(column: str) -> None:
    table = pa.table({**ROWS, column: [None, "x"]})
    noun = "id" if column == "id" else "text"
    message = f"a subscription has no {noun}"
    refused(UsageError, message, "every row needs both", Subscriptions.from_table, table, text="rule")


def test_all_bad_rows_of_a_table_are_named_and_the_sound_ones_added() -> None:
    book = stock().add("taken", "vol > 1")
    rows = {"broken": "vol >", "fine": "vol > 1", "two": "name > 5 OR prize < 5", "taken": "vol > 2"}
    with pytest.raises(LanguageErrors) as caught:
        book.add_table(pa.table({"id": list(rows), "text": list(rows.values())}))
    assert [(type(e), e.message) for e in caught.value.errors] == [
        (SyntaxProblem, "subscription broken: the text ends too early"),
        (TypeProblem, "subscription two: BIGINT cannot be compared with STRING"),
        (UnknownName, "subscription two: stream stock has no attribute prize"),
        (DuplicateName, "there is a subscription taken already"),
    ]
    assert caught.value.errors[0].place is not None
    assert list(book) == ["taken", "fine"]


PATTERN = "SELECT e1.x AS x FROM FILTER {{x > {0}}} (s) NEXT {{$2.x = $1.x AND t = '{1}' AND DUR < {2}}} s"


def streamed() -> Subscriptions:
    return Subscriptions().stream("s", {"x": "bigint", "t": "string", "at": "bigint"}, time="at")


def test_a_pattern_that_differs_in_constants_alone_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    checked = scopes.check_pattern

    def counted(*given: Any) -> Any:
        asked.append(given)
        return checked(*given)

    monkeypatch.setattr(admission, "check_pattern", counted)
    book = streamed().add("a", PATTERN.format(1, "a", 5)).add("b", PATTERN.format(2, "b", 5))
    assert len(asked) == 1
    book.add("c", PATTERN.format(2, "b", 6))
    assert len(asked) == 2, "a length of time is part of the key"
    rows = [{"x": 3, "t": "a", "at": 1}, {"x": 3, "t": "b", "at": 2}]
    assert book.compile().match(rows, output="counts").column("subscription").to_pylist() == ["b", "c"]


def test_a_known_pattern_with_a_wrong_constant_is_refused() -> None:
    book = streamed().add("a", PATTERN.format(1, "a", 5))
    with pytest.raises(LanguageError, match="at most 400 digits"):
        book.add("b", PATTERN.format("9" * 500, "a", 5))
    with pytest.raises(LanguageError, match="cannot be compared with"):
        book.add("b", PATTERN.replace("'{1}'", "{1}").format(1, 7, 5))


def test_a_known_pattern_is_checked_again_when_its_stream_has_changed() -> None:
    book = streamed().add("a", PATTERN.format(1, "a", 5)).remove("a")
    book.extend("DROP STREAM s; CREATE STREAM s (x STRING, t STRING, at BIGINT) TIME at;")
    with pytest.raises(LanguageError, match="x"):
        book.add("a", PATTERN.format(1, "a", 5))
