"""Explanations of sequences: the automaton and the story of the runs."""

from __future__ import annotations

import pytest

import headgate as hg

TEXT = "SELECT e1.x AS a, e2.x AS b FROM FILTER {x > 3} (s) NEXT {$2.x > $1.x} s"


def book() -> hg.Subscriptions:
    made = hg.Subscriptions()
    made.stream("s", {"x": "bigint", "at": "bigint"}, time="at")
    made.stream("t", {"y": "bigint", "at": "bigint"}, time="at")
    return made


def events(*xs: int) -> list[dict[str, int]]:
    return [{"x": x, "at": i} for i, x in enumerate(xs, start=1)]


def test_the_story_says_how_each_run_came_to_its_match() -> None:
    why = book().add("up", TEXT).compile().explain("up", events(5, 4, 7))
    assert why.matched
    assert [line.strip() for line in why.story][4:] == [
        "what happened to its runs:",
        "run [1, 1] at NEXT e2: waits",
        "run [2, 2] at NEXT e2: waits",
        "run [1, 1] at NEXT e2: moved on by event 2",
        "run [2, 2] at NEXT e2: moved on by event 2",
        "run [3, 3] at NEXT e2: waits",
        "2 match(es), 1 run(s) still waiting",
    ]


def test_a_miss_says_where_the_runs_wait() -> None:
    made = book().add("up", TEXT).compile()
    assert made.explain("up", events(5, 4)).blocking == ("no event came for the run that waits at NEXT e2",)
    assert made.explain("up", events(1, 2)).blocking == ("no event began a run",)
    assert made.explain("up", []).blocking == ("no event began a run",)


def test_a_miss_says_that_every_run_died() -> None:
    text = "SELECT * FROM FILTER {e2.x > 50} (FILTER {x = 1} (s) NEXT {TRUE} s)"
    why = book().add("dead", text).compile().explain("dead", events(1, 2))
    assert why.blocking == ("no run got past NEXT e2",)
    assert "run [1, 1] at NEXT e2: died: the event fits theta and no edge by event 1" in "\n".join(why.story)


def test_one_event_is_a_story_too() -> None:
    assert book().add("up", TEXT).compile().explain("up", {"x": 5, "at": 1}).matched is False


def test_events_of_several_streams_come_by_name() -> None:
    made = book().add("two", "SELECT * FROM s NEXT {$2.y = $1.x} t").compile()
    given = {"s": [{"x": 5, "at": 1}], "t": [{"y": 4, "at": 2}, {"y": 5, "at": 3}]}
    assert made.explain("two", given).matched
    with pytest.raises(hg.HeadgateError, match="which stream are these events of"):
        made.explain("two", [{"x": 5, "at": 1}])


def test_a_sequence_over_published_events_is_told_with_its_publisher() -> None:
    made = book().add("up", TEXT + " PUBLISH ups").add("twice", "SELECT * FROM ups NEXT {TRUE} ups").compile()
    why = made.explain("twice", events(5, 6, 5, 6))
    assert why.matched
    assert all("NEXT e2" in line for line in why.story if "run [" in line)


def test_other_sequences_do_not_show_in_the_story() -> None:
    alone = book().add("up", TEXT).compile().explain("up", events(5, 4, 7)).story
    beside = book().add("other", "SELECT * FROM s NEXT {$2.x = 1} s").add("up", TEXT).compile()
    assert beside.explain("up", events(5, 4, 7)).story == alone


def test_the_picture_is_the_automaton() -> None:
    why = book().add("up", TEXT).compile().explain("up")
    assert why.matched is None
    assert [p.title for p in why.pictures] == ["automaton of up"]
    assert 'n0 -> n1 [label="forward: s: e1.x > 3"];' in why.graphviz


def test_an_event_that_cannot_be_used_is_an_error() -> None:
    with pytest.raises(hg.EventError, match="event 0 of stream s"):
        book().add("up", TEXT).compile().explain("up", [{"x": "five", "at": 1}])
