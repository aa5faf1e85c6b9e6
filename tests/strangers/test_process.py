"""A crowd in one process: whatever strangers add, replace, pause and remove, each matches what a book of his own would."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import pytest
from tests.core.cases import PREFIX, Subscription, declaration, drawn_event, subscription
from tests.core.conditions import Scope, attributes, predicate
from tests.core.operators import OPERATORS
from tests.core.sequences import select

import headgate as hg

_STREAMS = ["s", "t", "u"]
"""The last is declared by nobody."""
Found = dict[str, list[tuple[str, int, str]]]


def honest(random: Random, number: int) -> Subscription:
    """One that reads no publication of another."""
    stream = random.choice(_STREAMS)
    if random.randrange(3):
        text = predicate(random, Scope(attributes()), 2)
    else:
        text = select(random, [stream], None)
    return Subscription(f"honest{number}", text, stream, random.choice(["null", "null", "strict", "default"]))


def accepted(book: hg.Subscriptions, one: Subscription) -> bool:
    try:
        book.add(one.name, one.text, on=one.stream, missing=one.missing)
    except hg.HeadgateError:
        return False
    return True


def empty(script: str) -> hg.Subscriptions:
    book = hg.Subscriptions(operators=OPERATORS)
    book.add("first", "TRUE", on="u")
    return book.extend(script)


def matches(book: hg.Subscriptions, events: dict[str, list[Any]]) -> Found:
    table, _ = book.compile().match(events, errors="collect")
    found: Found = defaultdict(list)
    for row in table.to_pylist():
        found[row["subscription"]].append((row["stream"], row["event"], row["output"] or ""))
    return {name: sorted(rows) for name, rows in found.items()}


def change(random: Random, book: hg.Subscriptions, hostile: list[str], number: int) -> None:
    """One hostile stranger does something to what is his."""
    name = random.choice(hostile) if hostile else ""
    way = random.randrange(5)
    if name and name in book and way == 0:
        book.remove(name)
    elif name and name in book and way == 1:
        book.pause(name)
    elif name and name in book and way == 2:
        book.resume(name)
    else:
        made = subscription(random, number, _STREAMS, "TRUE")
        if accepted(book, Subscription(f"hostile{number}", made.text, made.stream, made.missing)):
            hostile.append(f"hostile{number}")


@pytest.mark.parametrize("seed", range(6))
def test_everyone_matches_what_a_book_of_his_own_matches(seed: int) -> None:
    random = Random(seed)
    script = " ".join([PREFIX, *(declaration(random, s) for s in _STREAMS if s != "u")])
    book = empty(script)
    alone: dict[str, hg.Subscriptions] = {}
    for number in range(25):
        one = honest(random, number)
        his = empty(script)
        # What is accepted does not depend on others either.
        assert accepted(his, one) == accepted(book, one), one
        if one.name in his:
            alone[one.name] = his
    assert len(alone) > 10
    hostile: list[str] = []
    expected = 0
    for turn in range(5):
        for number in range(6):
            change(random, book, hostile, 6 * turn + number)
        events = {s: [drawn_event(random) for _ in range(12)] for s in _STREAMS}
        together = matches(book, events)
        for name, his in alone.items():
            wanted = matches(his, events).get(name, [])
            expected += len(wanted)
            assert together.get(name, []) == wanted, (script, his[name], events)
    assert expected > 50
