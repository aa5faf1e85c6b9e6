"""`ip IN CIDR '...'`: on columns, on a row, in sequences."""

from __future__ import annotations

from typing import Any

import pytest

import headgate as hg
from headgate.errors import LanguageError

ADDRESSES = ["10.0.0.7", "11.0.0.7", "2001:db8::1", "2001:db9::1", "ten", "", None]


def matched(text: str, rows: list[dict[str, Any]]) -> list[int]:
    book = hg.Subscriptions().stream("s", {"ip": "string", "other": "string", "t": "bigint"}, time="t")
    book.add("it", text, on="s")
    return [int(event) for event in book.compile().match(rows).column("event").to_pylist()]


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("ip IN CIDR '10.0.0.0/8'", [0]),
        ("ip NOT IN CIDR '10.0.0.0/8'", [1, 2, 3, 4, 5]),
        ("ip IN CIDR '10.9.9.9/8'", [0]),
        ("ip IN CIDR '2001:db8::/32'", [2]),
        ("LOWER(ip) IN CIDR '2001:DB8::/32'", [2]),
        ("ip IN CIDR '0.0.0.0/0' OR ip IN CIDR '::/0'", [0, 1, 2, 3]),
    ],
)
def test_an_address_of_the_network_passes(test: str, expected: list[int]) -> None:
    assert matched(test, [{"ip": ip, "t": i} for i, ip in enumerate(ADDRESSES)]) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "SELECT b.ip FROM s AS a NEXT {$2.ip IN CIDR '10.0.0.0/8'} s AS b",
        "SELECT b.ip FROM s AS a NEXT {$1.ip IN CIDR '11.0.0.0/8' AND $2.ip IN CIDR '10.0.0.0/8' AND DUR < 9} s AS b",
    ],
)
def test_a_sequence_waits_for_an_address_of_the_network(pattern: str) -> None:
    rows = [{"ip": "11.0.0.1", "t": 1}, {"ip": "12.0.0.1", "t": 2}, {"ip": "10.0.0.1", "t": 3}]
    assert 2 in matched(pattern, rows)
    assert 1 not in matched(pattern, rows)


@pytest.mark.parametrize("network", ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "x/8", ""])
def test_what_is_no_network_is_refused_with_its_place(network: str) -> None:
    with pytest.raises(LanguageError) as caught:
        hg.Subscriptions().stream("s", {"ip": "string"}).add("it", f"ip IN CIDR '{network}'", on="s")
    assert caught.value.place is not None and "prefix" in (caught.value.hint or "")


def test_cidr_is_still_a_name() -> None:
    book = hg.Subscriptions().stream("s", {"cidr": "string"})
    assert len(book.add("it", "cidr = '10.0.0.0/8' AND cidr IN CIDR '10.0.0.0/8'", on="s")) == 1
