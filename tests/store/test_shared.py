"""What brokers keep in a store beside the book: leases, progress, cursors, dead letters, keys, publications."""

from __future__ import annotations

import time

import pytest

import headgate as hg
from headgate.store import Store
from headgate.store.keys import Keys
from headgate.store.outbox import Cursor, Outbox
from headgate.store.publications import Publication, Publications
from headgate.store.shared import SEQUENCES, Shared
from headgate.store.tickets import Ticket, Tickets

SECRET = b"a secret of the tests"


def test_a_lease_is_one_holders_until_it_ends_or_is_given_back(store: Store) -> None:
    shared = Shared(store.database)
    assert shared.lease("work", "a", 60)
    assert not shared.lease("work", "b", 60)
    assert shared.lease("work", "a", 60)
    shared.release("work", "b")
    assert not shared.lease("work", "b", 60)
    shared.release("work", "a")
    assert shared.lease("work", "b", -1)
    assert shared.lease("work", "a", 60)


def test_progress_never_goes_back(store: Store) -> None:
    shared = Shared(store.database)
    assert shared.progress() is None
    shared.advance("q", 7)
    shared.advance("q", 5)
    assert shared.progress() == 7
    shared.advance("another", 9)
    assert shared.progress() == 9


def test_sequences_begin_with_the_first_of_them(store: Store) -> None:
    shared = Shared(store.database)
    assert shared.sequences() is None
    shared.begin_sequences(4)
    shared.begin_sequences(6)
    assert shared.sequences() == 4
    shared.advance(SEQUENCES, 8)
    assert shared.sequences() == 8
    assert shared.progress() is None, "those who filter are not done with it"


def test_publications_in_one_transaction_have_ids_that_follow_each_other(store: Store) -> None:
    made = Publications(store.database, Keys(store.database, SECRET))
    now = time.time()
    one, two, again, other = made.publish(
        [
            Publication("s", ["{}", "{}"], now, "k", "digest"),
            Publication("s", ["{}"], now),
            Publication("s", ["{}", "{}"], now, "k", "digest"),
            Publication("s", ["{}"], now, "k", "another digest"),
        ]
    )
    assert (one.first, one.last, two.first, two.last) == (1, 2, 3, 3)
    assert again.repeated and (again.first, again.last) == (1, 2)
    assert other.conflict
    assert store.logs.last() == 3


def test_the_last_event_is_never_forgotten_because_ids_count_on_from_it(store: Store) -> None:
    store.logs.append("s", ["{}"] * 3)
    assert store.logs.trim(3) == 2
    assert store.logs.append("s", ["{}"]) == 4


def test_a_delivery_that_is_given_up_becomes_a_letter_and_its_cursor_goes_on(store: Store) -> None:
    outbox = Outbox(store.database)
    outbox.begin(["x"], 3)
    outbox.begin(["x"], 9)
    assert outbox.cursor("x") == Cursor("x", 3)
    outbox.move(Cursor("x", 3, 2, 99.0, "it answered 500"))
    assert outbox.cursors()["x"].note == "it answered 500"
    outbox.bury(Cursor("x", 4, 3), "id 4", "it answered 500")
    assert outbox.cursor("x") == Cursor("x", 4)
    (letter,) = outbox.letters("x")
    assert (letter.notification, letter.id, letter.attempts) == (4, "id 4", 3)
    outbox.forget(letter.seq)
    assert outbox.letter_count() == 0


def test_a_key_is_proven_by_its_secret_and_only_while_it_is_valid(store: Store) -> None:
    keys = Keys(store.database, SECRET)
    made, row = keys.create("desk 4", rate=5.0)
    assert keys.proven(made) == row
    assert keys.proven(made + "x") is None
    assert Keys(store.database, b"another secret of the tests").proven(made) is None
    assert made not in repr(keys.list())
    keys.revoke(row.id)
    assert keys.proven(made) is None
    with pytest.raises(hg.LanguageError, match="is revoked already"):
        keys.revoke(row.id)
    with pytest.raises(hg.UsageError, match="there is no scope fly"):
        keys.create("x", ["fly"])


def test_a_ticket_and_its_subscription_are_written_together_or_not_at_all(store: Store) -> None:
    tickets = Tickets(store.database, SECRET)
    row = Ticket("s1", tickets.hash("s1", "t"), None, None, {"kind": "stream"}, "active", 1.0, 2e9)
    store.stream("stock", {"vol": "bigint"})

    def subscribe(text: str) -> None:
        with store.transaction():
            tickets.put([row])
            store.add("s1", text, on="stock")

    with pytest.raises(hg.LanguageError):
        subscribe("wol > 1")
    assert tickets.find("s1") is None
    subscribe("vol > 1")
    assert tickets.proven("s1", "t", 5.0) == row
    assert tickets.proven("s1", "t", 3e9) is None
    assert tickets.proven("s1", "u", 5.0) is None
    assert list(store.book()) == ["s1"]


def test_notifications_come_with_their_events(store: Store) -> None:
    store.logs.append("s", ['{"a":1}', '{"a":2}'])
    found = {"kind": "match", "stream": "s", "output": None, "labels": None}
    rows = [{**found, "id": f"m{i}", "event": str(i), "subscription": f"x{i % 2}"} for i in (1, 2)]
    store.logs.notify(rows)
    store.logs.notify(rows)
    store.logs.notify([{**found, "id": "k", "event": "topic/0/7", "subscription": "x0"}])
    assert [(n.id, n.body) for n in store.logs.notices()] == [("m1", '{"a":1}'), ("m2", '{"a":2}'), ("k", None)]
    assert [n.id for n in store.logs.notices_of(["x0"], 0)] == ["m2", "k"]
