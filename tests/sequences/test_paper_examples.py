"""Subscriptions S1 to S7 and AutQ of the Cayuga paper (EDBT 2006, tables 1 and 2), with results checked by hand."""

from __future__ import annotations

from tests.sequences.book import match, select

from headgate.schema import Schema

MINUTE = 60_000_000
WEEK = 7 * 24 * 60 * MINUTE
STOCK = Schema.of("stock", {"name": "string", "price": "double", "vol": "bigint", "at": "timestamp"}, "at")
POSTS = Schema.of(
    "posts",
    {"website": "string", "category": "string", "link": "string", "description": "string", "at": "timestamp"},
    "at",
)
SITES = "website IN ('one.org', 'two.org')"


def ticks(*events: tuple[str, float, int], unit: int = MINUTE, vol: int = 100) -> list[tuple[str, float, int, int]]:
    return [(name, float(price), vol, at * unit) for name, price, at in events]


def test_s1_the_price_of_ibm_is_above_100() -> None:
    rows = ticks(("IBM", 101, 1), ("IBM", 100, 2), ("MSFT", 200, 3))
    found = match("SELECT price FROM FILTER {name = 'IBM' AND price > 100} (stock)", rows, schema=STOCK)
    assert found == [(MINUTE, MINUTE, "price=101.0")]


def test_s2_ibm_above_100_and_the_first_msft_price_afterwards_below_25() -> None:
    rows = ticks(("IBM", 101, 1), ("ORCL", 5, 2), ("MSFT", 24, 3), ("IBM", 102, 4), ("MSFT", 26, 5), ("MSFT", 20, 6))
    text = """SELECT e1.price AS ibm, e2.price AS msft FROM FILTER {e2.price < 25}
              (FILTER {name = 'IBM' AND price > 100} (stock) NEXT {name = 'MSFT'} stock)"""
    # After the IBM at 4 the first MSFT is at 26, so the one at 20 does not count.
    assert match(text, rows, schema=STOCK) == [(MINUTE, 3 * MINUTE, "ibm=101.0, msft=24.0")]


def test_s3_the_next_sale_of_the_same_stock_is_5_percent_dearer() -> None:
    rows = ticks(("A", 100, 1), ("B", 10, 2), ("A", 106, 3), ("B", 10.4, 4), ("A", 112, 5))
    text = """SELECT e1.name AS name, e2.price AS price FROM FILTER {e2.price > 1.05 * e1.price}
              (stock NEXT {$2.name = $1.name} stock)"""
    found = match(text, rows, schema=STOCK)
    assert found == [(MINUTE, 3 * MINUTE, "name='A', price=106.0"), (3 * MINUTE, 5 * MINUTE, "name='A', price=112.0")]


def test_s4_the_price_of_a_stock_rises_for_30_minutes() -> None:
    rows = ticks(("A", 1, 0), ("B", 9, 5), ("A", 2, 10), ("B", 8, 20), ("A", 3, 30), ("A", 2, 40))
    text = """SELECT e1.name AS name, e2.price AS price FROM FILTER {DUR >= 30 MINUTES}
              (stock FOLD {$2.name = $1.name, $2.price >= $.price} stock)"""
    assert match(text, rows, schema=STOCK) == [(0, 30 * MINUTE, "name='A', price=3.0")]


def test_s5_the_next_ibm_price_is_above_its_52_week_average() -> None:
    rows = ticks(
        ("IBM", 10, 0), ("IBM", 20, 26), ("MSFT", 99, 30), ("IBM", 30, 52), ("IBM", 21, 53), ("IBM", 1, 54), unit=WEEK
    )
    ibm = "FILTER {name = 'IBM'} (stock)"
    source = f"""FILTER {{e3.price > mean}}
               (FILTER {{DUR >= 52 WEEKS AND DUR < 53 WEEKS}} ({ibm} FOLD {{TRUE, TRUE, AVG(price) AS mean}} {ibm})
                NEXT {{name = 'IBM'}} stock)"""
    assert match(select("e3.price AS price, mean", source), rows, schema=STOCK) == [
        (0, 53 * WEEK, "price=21.0, mean=20.0")
    ]


def posts(*events: tuple[str, str, str, str, int]) -> list[tuple[str, str, str, str, int]]:
    return [(site, category, link, text, at * MINUTE) for site, category, link, text, at in events]


def test_s6_the_first_post_that_refers_to_an_article() -> None:
    rows = posts(
        ("military.blog.com", "US troop morale", "http://m/1", "an article", 1),
        ("other.org", "news", "http://o/1", "about http://m/1 here", 2),
        ("one.org", "news", "http://a/1", "nothing", 3),
        ("two.org", "news", "http://b/1", "see http://m/1", 4),
        ("one.org", "news", "http://a/2", "http://m/1 again", 5),
    )
    source = f"""FILTER {{website = 'military.blog.com' AND category = 'US troop morale'}} (posts)
               NEXT {{$2.description CONTAINS $1.link}} FILTER {{{SITES}}} (posts)"""
    assert match(select("e2.link AS link", source), rows, schema=POSTS) == [(MINUTE, 4 * MINUTE, "link='http://b/1'")]


def test_s7_postings_each_of_which_refers_to_the_one_before() -> None:
    rows = posts(
        ("one.org", "", "http://a/1", "XYZ has it", 1),
        ("two.org", "", "http://b/1", "from http://a/1", 2),
        ("one.org", "", "http://a/2", "again http://a/1", 3),
        ("one.org", "", "http://a/3", "via http://b/1", 4),
    )
    source = f"""FILTER {{{SITES} AND description CONTAINS 'XYZ'}} (posts)
               FOLD {{$2.description CONTAINS $.link}} FILTER {{{SITES}}} (posts)"""
    # The post at 3 refers to the first one, which by then is no longer the last.
    assert match(select("e1.link AS first, e2.link AS last", source), rows, schema=POSTS) == [
        (MINUTE, 2 * MINUTE, "first='http://a/1', last='http://b/1'"),
        (MINUTE, 4 * MINUTE, "first='http://a/1', last='http://a/3'"),
    ]


AUTQ = """SELECT e1.name AS name, e1.price AS top, low.price AS bottom, e3.price AS final
          FROM FILTER {e3.price > 1.05 * low.price}
               (FILTER {DUR >= 10 MINUTES}
                    (FILTER {vol > 10000} (stock) FOLD {$2.name = $1.name, $2.price < $.price} stock AS low)
                NEXT {$2.name = low.name} stock)"""


def test_autq_a_fall_of_ten_minutes_from_a_large_trade_then_a_rise_of_5_percent() -> None:
    rows = [
        ("A", 100.0, 20_000, 0),
        ("A", 90.0, 10, 4 * MINUTE),
        ("B", 95.0, 10, 5 * MINUTE),
        ("A", 80.0, 10, 10 * MINUTE),
        ("A", 85.0, 10, 12 * MINUTE),
    ]
    # 80 * 1.05 = 84 < 85. The fall that ends at 4 minutes is too short.
    assert match(AUTQ, rows, schema=STOCK) == [(0, 12 * MINUTE, "name='A', top=100.0, bottom=80.0, final=85.0")]


def test_autq_is_silent_if_the_next_quote_after_the_bottom_does_not_rise_enough() -> None:
    rows = [
        ("A", 100.0, 20_000, 0),
        ("A", 80.0, 10, 10 * MINUTE),
        ("A", 83.0, 10, 12 * MINUTE),
        ("A", 99.0, 10, 13 * MINUTE),
    ]
    assert match(AUTQ, rows, schema=STOCK) == []
