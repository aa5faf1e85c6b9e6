"""Every definition of a book is in its store: what accepted changes lead to can be opened again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store import operators_for_tests
from tests.store.changes import everything

import headgate as hg
from headgate.errors import DuplicateName, LanguageErrors
from headgate.store import Store
from headgate.store.replica import Replica
from headgate.subscriptions import Subscriptions

TTL = (
    "@prefix : <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :Cat rdfs:subClassOf :Animal ."
)
PAIRS = "SELECT a.x AS x FROM trade AS a NEXT {$2.x = $1.x} trade AS b PUBLISH pairs"
OF_PAIRS = "SELECT p.x AS x FROM pairs AS p NEXT {$2.x = $1.x} trade AS b"


@pytest.fixture
def again(url: str, store: Store) -> Iterator[Store]:
    """The same store, opened by another process."""
    made = Store(url)
    yield made
    assert everything(made.book()) == everything(store.look()), "the book is not the one before"
    made.close()


def test_a_stream_that_was_named_lives_beside_one_that_is_declared_later(store: Store, again: Store) -> None:
    store.add("cheap", "price < 100", on="stock")
    store.stream("news", {"title": "string"})
    assert again.quarantined() == []
    assert list(again.book()) == ["cheap"]


def test_what_was_learned_of_a_stream_stays_when_the_teacher_goes(store: Store, again: Store) -> None:
    store.add("teacher", "vol > 1 AND size > 2", on="stock")
    store.add("both", "vol = size", on="stock")
    store.remove("teacher")
    assert again.book()["both"].text == "vol = size"


def test_prefixes_ontologies_and_templates_are_kept_by_content(store: Store, again: Store, tmp_path: Path) -> None:
    (tmp_path / "o.ttl").write_text(TTL)
    store.extend(
        """PREFIX : <http://e.org/>;
        CREATE ONTOLOGY o FROM 'o.ttl';
        CREATE STREAM pets (kind STRING, age BIGINT) AS GRAPH { _:H a kind ; :age age };
        CREATE SUBSCRIPTION q ON pets AS GRAPH { _:H a :Animal ; :age ?a . FILTER (?a > 3) };""",
        tmp_path,
    )
    (tmp_path / "o.ttl").unlink()
    (found,) = again.book().compile().match({"pets": [{"kind": "Cat", "age": 4}]}).to_pylist()
    assert found["subscription"] == "q"


def test_a_book_with_a_prefix_and_a_graph_is_loaded(store: Store, again: Store) -> None:
    given = hg.Subscriptions.parse(
        "PREFIX x: <http://x.org/>; CREATE STREAM g (doc GRAPH); CREATE SUBSCRIPTION a ON g AS GRAPH { _:H x:p 1 };"
    )
    store.load(given)
    assert everything(again.book()) == everything(given)


def test_a_book_whose_open_stream_is_older_than_a_declared_one_is_loaded(store: Store, again: Store) -> None:
    given = Subscriptions().add("cheap", "price < 100", on="stock").stream("news", {"title": "string"})
    store.load(given)
    assert everything(again.book()) == everything(given)


def test_a_book_that_declares_a_stream_in_another_way_is_refused(store: Store, again: Store) -> None:
    store.stream("s", {"x": "bigint"})
    store.load(Subscriptions().stream("s", {"x": "bigint"}).add("a", "x = 1"))
    with pytest.raises(DuplicateName, match="stream s is declared already"):
        store.load(Subscriptions().stream("s", {"x": "string"}).add("b", "x = 'text'"))
    assert list(again.book()) == ["a"]


def test_an_operator_is_kept_by_the_name_of_its_module(url: str, store: Store) -> None:
    mine = Store(url, [operators_for_tests.is_even])
    mine.stream("s", {"n": "bigint"})
    mine.add("even", "is_even(n)")
    found = store.book().compile().match([{"n": 2}, {"n": 3}]).to_pylist()
    assert [row["event"] for row in found] == [0]
    mine.close()


def test_an_operator_that_no_module_has_is_set_aside_with_what_calls_it(url: str, store: Store) -> None:
    @hg.operator
    def lucky(event: object, n: int) -> bool:
        return n == 7

    mine = Store(url, [lucky])
    mine.stream("s", {"n": "bigint"})
    mine.add("lucky", "lucky(n)")
    mine.add("large", "n > 5")
    assert list(store.book()) == ["large"]
    operator, subscription = store.quarantined()
    assert (operator.kind, operator.name) == ("operator", "lucky")
    assert operator.reason == "operator lucky was defined in a program, and no module has it"
    assert (subscription.kind, subscription.name) == ("subscription", "lucky")
    assert "the operator lucky is set aside" in subscription.reason
    assert list(mine.book()) == ["lucky", "large"]
    mine.close()


def aside(store: Store, name: str, body: str) -> None:
    """As if a newer Headgate had written it."""
    sql = "INSERT INTO changes (version, kind, name, body, born, at) VALUES (?, ?, ?, ?, ?, 0)"
    version = store.version + 1
    store.database.execute(sql, (version, "subscription", name, body, version))


NEWER = '{"text": "x RESEMBLES 1", "on": "s", "missing": "null"}'


def test_a_text_of_a_newer_grammar_is_set_aside_alone(store: Store) -> None:
    store.stream("s", {"x": "bigint"})
    aside(store, "newer", NEWER)
    store.add("mine", "x > 1")
    assert list(store.book()) == ["mine"]
    (found,) = store.quarantined()
    assert found.name == "newer" and found.version == 2
    assert len(store) == 2


def test_the_name_of_what_is_set_aside_is_taken(store: Store) -> None:
    aside(store, "newer", NEWER)
    with pytest.raises(DuplicateName, match="there is a subscription newer already, set aside"):
        store.add("newer", "x > 1", on="s")
    with pytest.raises(DuplicateName, match="set aside"):
        store.load(Subscriptions().add("newer", "x > 1", on="s"))


def test_what_is_set_aside_can_be_paused_replaced_and_removed(store: Store, again: Store) -> None:
    store.stream("s", {"x": "bigint"})
    for name in ("a", "b", "c"):
        aside(store, name, NEWER)
    store.pause("a")
    store.replace("a", "x > 1")
    store.remove("b")
    store.remove_all(["c", "nobody"])
    assert store.quarantined() == []
    assert again.book()["a"].paused and again.book()["a"].text == "x > 1"


def test_a_stream_that_is_set_aside_is_not_taken_for_an_open_one(store: Store) -> None:
    store.stream("s", {"x": "bigint"})
    store.add("mine", "x > 1", on="s")
    store.database.execute("UPDATE changes SET body = ? WHERE kind = 'stream'", ('{"columns": []}',))
    other = Store(store.url)
    assert list(other.book()) == []
    assert [(q.kind, q.name) for q in other.quarantined()] == [("stream", "s"), ("subscription", "mine")]
    with pytest.raises(hg.HeadgateError, match="the stream s is set aside"):
        other.add("more", "x = 'text'", on="s")
    with pytest.raises(DuplicateName, match="set aside"):
        other.stream("s", {"x": "string"})
    other.discard("stream", "s")
    assert [q.kind for q in other.quarantined()] == ["subscription"]
    other.close()


def test_a_kind_that_this_headgate_does_not_know_is_kept_and_set_aside(store: Store) -> None:
    aside(store, "spam", '{"values": [1]}')
    store.database.execute("UPDATE changes SET kind = 'list'")
    store.add("mine", "x > 1")
    (found,) = store.quarantined()
    assert str(found) == "list spam: this Headgate knows no definition of the kind list"


def test_a_sequence_reads_what_a_later_one_publishes(store: Store, again: Store) -> None:
    store.stream("trade", {"x": "bigint", "at": "bigint"}, "at")
    store.add("reads", "SELECT a.x AS x FROM trade AS a NEXT {$2.x = 1} trade AS b")
    store.add("pairs", PAIRS)
    store.replace("reads", OF_PAIRS)
    assert again.quarantined() == []
    assert list(again.book()) == ["reads", "pairs"]


def test_a_sequence_outlives_the_one_that_published_what_it_reads(store: Store, again: Store) -> None:
    store.stream("trade", {"x": "bigint", "at": "bigint"}, "at")
    store.add("pairs", PAIRS)
    store.add("reads", OF_PAIRS)
    store.remove("pairs")
    assert again.quarantined() == []
    again.book().compile()


def test_a_stream_that_a_subscription_publishes_cannot_be_dropped(store: Store) -> None:
    store.stream("trade", {"x": "bigint", "at": "bigint"}, "at")
    store.add("pairs", PAIRS)
    with pytest.raises(LanguageErrors, match="stream pairs is in use by subscription pairs"):
        store.extend("DROP STREAM pairs")


def test_a_script_is_run_whole_or_not_at_all(store: Store, again: Store) -> None:
    with pytest.raises(LanguageErrors):
        store.extend("PREFIX x: <http://x.org/>; CREATE STREAM s (n BIGINT); DROP STREAM nobody;")
    assert store.version == 0
    assert "x" not in store.look().catalogue.prefixes and not store.streams()
    store.extend("CREATE STREAM s (n STRING)")


def test_names_come_back_in_their_order(store: Store, again: Store) -> None:
    for name in "abc":
        store.add(name, "x = 1")
    store.remove("a")
    store.add("a", "x = 2")
    store.replace("b", "x = 3")
    assert list(again.book()) == ["b", "c", "a"]


def test_a_refused_change_costs_no_second_reading_of_the_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.stream("s", {"x": "bigint"})
    store.add("a", "x = 1")

    def never(*_: object) -> None:
        pytest.fail("the book was made anew")

    monkeypatch.setattr(Replica, "load", never)
    for text in ("y = 1", "x = 'text'", "x <"):
        with pytest.raises(hg.HeadgateError):
            store.add_all({"b": {"text": "x = 2"}, "bad": {"text": text}})
        with pytest.raises(hg.HeadgateError):
            store.add("o", text)
    store.add("b", "x = 3")
    assert [(n, store.look()[n].text) for n in store.look()] == [("a", "x = 1"), ("b", "x = 3")]


def test_what_a_refused_change_taught_is_forgotten(store: Store, again: Store) -> None:
    store.add("a", "x = 1", on="open")
    before = store.look().streams["open"]
    with pytest.raises(hg.HeadgateError):
        store.add_all({"b": {"text": "y = 2", "on": "open"}, "bad": {"text": "x >", "on": "open"}})
    assert store.look().streams["open"] == before
    store.add("c", "y = 'text'", on="open")
    assert list(again.book()) == ["a", "c"]


def test_a_transaction_that_fails_leaves_the_book_as_it_was(store: Store, again: Store) -> None:
    store.add("a", "x = 1")

    def fail() -> None:
        with store.transaction():
            store.add("b", "z = 1")
            store.pause("a")
            store.remove("b")
            raise KeyError("something else")

    with pytest.raises(KeyError):
        fail()
    assert not store.look()["a"].paused
    assert list(store.look()) == ["a"]
