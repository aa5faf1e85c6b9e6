"""Explanations of sequences: the automaton in three drawings, the runs alive, and why a run died."""

from __future__ import annotations

from tests.sequences.book import STATIC, STOCK, columns_of, session_of, spines_of

from headgate.sequences.explain import draw, tell
from headgate.sequences.publish_levels import Subscription

TEXT = """SELECT e1.name AS name FROM FILTER {DUR >= 10}
          (FILTER {vol > 5} (stock) FOLD {$2.name = $1.name, $2.price < $.price} stock AS low)"""


def test_the_drawing_has_forward_filter_and_rebind_edges() -> None:
    drawing = draw(session_of(spines_of({"fall": TEXT}, STOCK)).index, "fall")
    assert [" ".join(line.split()) for line in drawing.text().splitlines()] == [
        "fall: start -> 1 FOLD low -> accept",
        "start -> 1 FOLD low forward stock: e1.vol > 5",
        "1 FOLD low -> 1 FOLD low filter NOT (low.name = e1.name)",
        "1 FOLD low -> 1 FOLD low rebind low.name = e1.name AND low.price < $.price",
        "1 FOLD low -> accept forward low.name = e1.name AND low.price < $.price AND DUR >= 10",
    ]


def test_the_drawing_can_be_given_to_graphviz_and_mermaid() -> None:
    drawing = draw(session_of(spines_of({"fall": TEXT}, STOCK)).index, "fall")
    picture = drawing.picture("fall")
    assert 'n1 [label="1 FOLD low", shape=circle];' in picture.graphviz
    assert 'n1 -> n1 [label="filter: NOT (low.name = e1.name)", style=dashed];' in picture.graphviz
    assert '  n1 ==>|"rebind: low.name = e1.name AND low.price #lt; $.price"| n1' in picture.mermaid


def test_the_runs_alive_are_counted_by_subscription() -> None:
    texts = {
        "pair": "SELECT * FROM stock NEXT {$2.name = $1.name} stock",
        "text": "SELECT * FROM stock NEXT {name CONTAINS $1.name AND vol = 3} stock",
    }
    session = session_of(spines_of(texts, STOCK))
    session.feed([columns_of(STOCK, [("A", 1.0, 1, 1), ("B", 1.0, 1, 2), ("A", 1.0, 1, 3)])])
    assert session.runs() == {"pair": 2, "text": 3}


def test_a_quota_drops_the_oldest_run_and_says_so() -> None:
    spines = spines_of({"pair": "SELECT e1.price AS p FROM stock NEXT {$2.name = $1.name} stock"}, STOCK)
    session = session_of(spines, quota=2)
    rows = [("A", 1.0, 1, 1), ("B", 2.0, 1, 2), ("C", 3.0, 1, 3)]
    session.feed([columns_of(STOCK, rows)])
    assert [(e.subscriptions, e.reason[:28]) for e in session.errors] == [(("pair",), "1 of the oldest runs dropped")]
    later = session.feed([columns_of(STOCK, [("A", 9.0, 1, 4), ("C", 9.0, 1, 5)], 3)])
    assert [m["output"] for m in later] == [{"p": 3.0}], "the run of A was the oldest"


def test_a_story_says_why_a_run_died() -> None:
    spine = spines_of(
        {"s": "SELECT * FROM FILTER {e2.price > 5} (FILTER {price = 1} (stock) NEXT {TRUE} stock)"}, STOCK
    )["s"]
    story = tell(Subscription("s", spine), [columns_of(STOCK, [("A", 1.0, 1, 1), ("A", 2.0, 1, 2)])], static=STATIC)
    assert str(story).splitlines() == [
        "run [1, 1] at NEXT e2: waits",
        "run [1, 1] at NEXT e2: died: the event fits theta and no edge by event 1",
        "0 matches",
    ]


def test_a_story_says_that_a_run_has_expired() -> None:
    spine = spines_of({"s": "SELECT * FROM stock NEXT {DUR < 3 AND price = 7} stock"}, STOCK)["s"]
    story = tell(Subscription("s", spine), [columns_of(STOCK, [("A", 1.0, 1, 1), ("A", 7.0, 1, 9)])], static=STATIC)
    assert "run [1, 1] at NEXT e2: expired: no event can come within its DUR any more by event 1" in str(story)
