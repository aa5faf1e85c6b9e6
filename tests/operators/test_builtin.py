"""The operators that come with Headgate, each against something known."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headgate.errors import UsageError
from headgate.operators import VAR, Operator
from headgate.operators.builtin.image import blobs, count_faces, count_people, decode, image_operators
from headgate.operators.builtin.reasoning import Hierarchy, Rules, class_operators, rule_operators
from headgate.operators.builtin.spatial import Gazetteer, spatial_operators
from headgate.operators.builtin.text import Entities, Languages, Tone, text_operators
from headgate.operators.event import of_values

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
POINT = {"type": "Point", "coordinates": [-74.0445, 40.6892]}


def named(made: list[Operator], name: str) -> Operator:
    return next(o for o in made if o.name == name)


def at(x: float | None, y: float | None) -> Any:
    return of_values({("longitude",): x, ("latitude",): y})


@pytest.fixture(params=["geojson", "sqlite"])
def gazetteer(request: pytest.FixtureRequest, tmp_path: Path) -> Gazetteer:
    places = {"Square": SQUARE, "Liberty": POINT}
    if request.param == "geojson":
        features = [{"type": "Feature", "properties": {"name": n}, "geometry": g} for n, g in places.items()]
        (tmp_path / "places.json").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        return Gazetteer.from_geojson(tmp_path / "places.json")
    connection = sqlite3.connect(tmp_path / "places.db")
    with connection:
        connection.execute("CREATE TABLE places (name TEXT, geometry TEXT)")
        connection.executemany("INSERT INTO places VALUES (?, ?)", [(n, json.dumps(g)) for n, g in places.items()])
    connection.close()
    return Gazetteer.from_sqlite(tmp_path / "places.db")


def test_a_position_is_in_a_place_or_near_it(gazetteer: Gazetteer) -> None:
    made = spatial_operators(gazetteer)
    loc_in, loc_within = named(made, "loc_in"), named(made, "loc_within")
    assert loc_in(at(0.5, 0.5), "Square") is True
    assert loc_in(at(1.0, 0.5), "Square") is True
    assert loc_in(at(1.1, 0.5), "Square") is False
    assert loc_in(at(None, 0.5), "Square") is False
    assert loc_in(at(0.5, 0.5), VAR) == [("Square",)]
    assert loc_within(at(1.01, 0.5), "Square", 1200) is True
    assert loc_within(at(1.01, 0.5), "Square", 1000) is False
    with pytest.raises(UsageError, match=r"no place Sqare\n  hint: did you mean Square"):
        loc_in(at(0.5, 0.5), "Sqare")


def test_a_distance_is_geodesic(gazetteer: Gazetteer) -> None:
    distance = named(spatial_operators(gazetteer), "distance_from")
    # From the Statue of Liberty to the Empire State Building.
    ((metres,),) = distance(at(-73.98566, 40.74844), "Liberty", VAR)
    assert metres == pytest.approx(8246, abs=30)
    assert distance(at(0.5, 0.5), "Square", VAR) == [(0.0,)]


def text(value: str | None) -> Any:
    return of_values({("text",): value})


def test_keywords_are_whole_words_in_any_case() -> None:
    has_keyword = named(text_operators(), "has_keyword")
    assert has_keyword(text("A MOB is forming"), "mob") is True
    assert has_keyword(text("mobile phones"), "mob") is False
    assert has_keyword(text("near Times square"), "fire", "times square") is True
    assert has_keyword(text(None), "mob") is False


def test_entities_are_bound_with_their_kind() -> None:
    mentions = named(text_operators(entities=Entities({"city": ["New York", "Rome"], "river": ["Tiber"]})), "mentions")
    event = text("From Rome along the Tiber; Romeo stays.")
    assert mentions(event, VAR, VAR) == [("Rome", "city"), ("Tiber", "river")]
    assert mentions(event, VAR, "city") == [("Rome",)]
    assert list(mentions(event, "Tiber", "river")) == [()]
    assert mentions(event, "New York", VAR) == []


def test_languages_are_told_apart_by_their_trigrams() -> None:
    samples = {
        "en": "The quick brown fox jumps over the lazy dog and then the other animals of the forest come to see what "
        "has happened there; with all of them the old owl, who thinks that this is nothing to be worried about.",
        "de": "Der schnelle braune Fuchs springt über den faulen Hund und dann kommen die anderen Tiere des Waldes, um "
        "zu sehen, was dort geschehen ist; mit ihnen auch die alte Eule, die sich darüber keine Sorgen macht.",
    }
    language = named(text_operators(languages=Languages(samples)), "language")
    assert language(text("there is nothing in the house that they have not seen"), "en") is True
    assert language(text("und die Kinder gehen durch den Wald nach Hause"), VAR) == [("de",)]
    assert language(text("1234"), VAR) is False


def test_the_tone_is_learned_from_examples() -> None:
    examples = [
        ("what a lovely calm day", "good"),
        ("I love this", "good"),
        ("terrible noise and smoke", "bad"),
        ("I hate smoke", "bad"),
    ]
    tone = named(text_operators(tone=Tone(examples)), "tone")
    ((label, sureness),) = tone(text("so much smoke and noise"), VAR, VAR)
    assert label == "bad"
    assert 0.8 < sureness < 1.0
    assert tone(text("a lovely calm day"), "bad", VAR) == []


def png(picture: Any) -> bytes:
    import cv2

    return bytes(cv2.imencode(".png", picture)[1].tobytes())


def test_things_of_a_colour_are_counted_in_the_bytes_of_a_picture() -> None:
    picture = np.zeros((60, 80, 3), np.uint8)
    for x in (5, 30, 55):
        picture[10:20, x : x + 10] = (0, 0, 255)
    picture[40, 40] = (0, 0, 255)
    red = [((0, 200, 200), (5, 255, 255))]
    assert len(blobs(decode(png(picture)), red)) == 3
    thing_count = named(image_operators(things={"bus": red}), "thing_count")
    event = of_values({("image",): png(picture)})
    assert thing_count(event, "bus", VAR) == [(3,)]
    assert thing_count(event, "bus", 2) is False
    with pytest.raises(UsageError, match="no colour is given for tram"):
        thing_count(event, "tram", VAR)
    with pytest.raises(UsageError, match="4 bytes are not a picture"):
        decode(b"nope")


def test_an_empty_picture_has_neither_people_nor_faces() -> None:
    plain = np.full((240, 320, 3), 127, np.uint8)
    assert count_people(plain) == 0
    assert count_faces(plain) == 0
    assert count_people(plain[:50]) == 0


def test_the_face_cascade_finds_the_one_face_of_a_photograph() -> None:
    from matplotlib.cbook import get_sample_data

    photograph = Path(str(get_sample_data("grace_hopper.jpg", asfileobj=False))).read_bytes()
    face_count = named(image_operators(), "face_count")
    assert face_count(of_values({("image",): photograph}), VAR) == [(1,)]


def test_rules_derive_what_follows_from_the_facts_of_the_event() -> None:
    rules = Rules("alarm(P) :- seen(P, fire). alarm(P) :- alarm(Q), near(Q, P). seen(P, fire) :- smoke(P), hot(P).")
    facts = lambda event: [("smoke", event["place"]), ("hot", "mill"), ("near", "mill", "bridge")]  # noqa: E731 - one line of test
    derivable = named(rule_operators(rules, facts, needs=["place"]), "derivable")
    burning, calm = of_values({("place",): "mill"}), of_values({("place",): "lake"})
    assert sorted(derivable(burning, "alarm", VAR)) == [("bridge",), ("mill",)]
    assert derivable(burning, "alarm", "bridge") == [()]
    assert derivable(calm, "alarm", VAR) == []


def test_rules_with_a_mistake_and_facts_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="the rules cannot be used"):
        Rules("a(X) :- .").derive([], "a", 1)
    with pytest.raises(UsageError, match=r"a fact cannot hold 1\.5"):
        Rules("").derive([("a", 1.5)], "a", 1)


def test_only_what_holds_in_every_answer_set_is_derived() -> None:
    assert Rules("1 { a(1); a(2) } 1. b :- a(1). b :- a(2).").derive([], "a", 1) == []
    assert Rules("1 { a(1); a(2) } 1. b :- a(1). b :- a(2).").derive([], "b", 0) == [()]


def test_a_class_is_below_all_its_ancestors() -> None:
    is_a = named(
        class_operators(Hierarchy({"ferry": ["ship"], "ship": ["vehicle"], "bus": ["vehicle"]}), "kind"), "is_a"
    )
    ferry = of_values({("kind",): "ferry"})
    assert is_a(ferry, "vehicle") is True
    assert is_a(ferry, "bus") is False
    assert is_a(ferry, VAR) == [("ferry",), ("ship",), ("vehicle",)]
    with pytest.raises(UsageError, match="above itself"):
        Hierarchy({"a": ["b"], "b": ["a"]}).classes("a")
