"""The five subscriptions of the operators paper (DEBS 2007, section 2.1) over a generated drone stream with pictures.

Every event is a picture taken over New York with the position of the drone. The pictures are drawn here with known
contents — cars, police cars, pedestrians, boats — and the operators find these again in the PNG bytes with OpenCV; the
spatial ones look places up in a gazetteer.

    python -m examples.drones [folder for pictures]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from headgate.columns import Columns
from headgate.explain.pictures import linked_chains
from headgate.language.parser import parse_body
from headgate.operators import VAR, Operator, operator
from headgate.operators.builtin.image import Picture, Range, blobs, decode
from headgate.operators.builtin.spatial import Gazetteer, spatial_operators
from headgate.operators.engine import OperatorEngine, Outcome
from headgate.operators.explain import chains_of, evaluation
from headgate.operators.index import OperatorIndex
from headgate.pictures import Picture as Diagram

SUBSCRIPTIONS = {
    "S1": "loc_in('Bronx') AND chase_pattern('police_car', 'car')",
    "S2": "loc_in('Bronx') AND mob_pattern(?people) AND ?people > 50",
    "S3": "loc_within('Times Square', 5000) AND traffic_pattern('congestion')"
    " AND pedestrian_count(?ped) AND ?ped > 250",
    "S4": "loc_in('Bronx') AND traffic_pattern('congestion') AND traffic_pattern('accident')"
    " AND police_car_count(?pol) AND ?pol < 2",
    "S5": "distance_from('Statue of Liberty', ?x) AND ?x < 1000 AND tour_boat_count(?y)"
    " AND coast_guard_boat_count(?z) AND ?y > 2 * ?z",
}
NEW_YORK: dict[str, Any] = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": "Bronx"},
            "geometry": {
                "type": "Polygon",
                "coordinates": [
                    [[-73.933, 40.808], [-73.912, 40.796], [-73.79, 40.81], [-73.765, 40.87], [-73.82, 40.89],
                     [-73.911, 40.916], [-73.92, 40.878], [-73.933, 40.808]]
                ],
            },
        },
        {
            "type": "Feature",
            "properties": {"name": "Times Square"},
            "geometry": {"type": "Point", "coordinates": [-73.9855, 40.758]},
        },
        {
            "type": "Feature",
            "properties": {"name": "Statue of Liberty"},
            "geometry": {"type": "Point", "coordinates": [-74.0445, 40.6892]},
        },
    ],
}  # fmt: skip
PLACES = {"Bronx": (-73.87, 40.85), "Times Square": (-73.99, 40.75), "Liberty Island": (-74.043, 40.691)}
HEIGHT, WIDTH, ROAD, WATER = 480, 640, (60, 60, 60), (120, 80, 40)
COLOURS = {
    "car": (0, 0, 220),
    "police_car": (255, 60, 0),
    "pedestrian": (0, 230, 230),
    "tour_boat": (220, 0, 220),
    "coast_guard_boat": (0, 140, 255),
}
HUES: dict[str, list[Range]] = {
    "car": [((0, 200, 150), (4, 255, 255)), ((176, 200, 150), (179, 255, 255))],
    "police_car": [((112, 200, 150), (120, 255, 255))],
    "pedestrian": [((28, 200, 150), (32, 255, 255))],
    "tour_boat": [((146, 200, 150), (154, 255, 255))],
    "coast_guard_boat": [((14, 200, 150), (20, 255, 255))],
}
NEAR, CONGESTED, CROWD = 90, 12, 12
"""Pixels within which a police car chases; cars that are a congestion; pixels between people of a mob."""


@dataclass(frozen=True)
class Scene:
    """What is in a picture."""

    place: str
    cars: int = 0
    police_cars: int = 0
    pedestrians: int = 0
    mob: int = 0
    chase: bool = False
    accident: bool = False
    tour_boats: int = 0
    coast_guard_boats: int = 0
    expected: frozenset[str] = field(default_factory=frozenset)


def draw(scene: Scene, rng: np.random.Generator) -> bytes:
    """The scene as a PNG."""
    image = np.full((HEIGHT, WIDTH, 3), (70, 110, 70), np.uint8)
    if scene.place == "Liberty Island":
        image[:] = WATER
    else:
        image[200:280] = ROAD
    boats = [*["tour_boat"] * scene.tour_boats, *["coast_guard_boat"] * scene.coast_guard_boats]
    for i, boat in enumerate(boats):
        _box(image, 30 + 90 * (i % 6), 300 + 50 * (i // 6), 40, 14, boat)
    if scene.chase:
        _box(image, 420, 255, 22, 12, "police_car")
        _box(image, 470, 255, 22, 12, "car")
    for i in range(scene.police_cars):
        _box(image, 20 + 200 * i, 204, 22, 12, "police_car")
    for i in range(scene.cars):
        _box(image, 10 + 31 * (i % 12), 225 + 18 * (i // 12), 22, 10, "car")
    if scene.accident:
        _box(image, 560, 225, 26, 12, "car")
        _box(image, 567, 212, 12, 38, "car")
    free = rng.permutation([(x, y) for x in range(5, WIDTH - 5, 24) for y in (*range(5, 90, 12), *range(290, 470, 12))])
    for x, y in free[: scene.pedestrians]:
        _box(image, int(x), int(y), 2, 2, "pedestrian")
    for i in range(scene.mob):
        _box(image, 200 + 8 * (i % 12), 100 + 8 * (i // 12), 2, 2, "pedestrian")
    return bytes(cv2.imencode(".png", image)[1].tobytes())


def _box(image: Picture, x: int, y: int, width: int, height: int, what: str) -> None:
    image[y : y + height, x : x + width] = COLOURS[what]


def drone_operators() -> list[Operator]:
    """Operators for what the drones photograph, over coloured regions of the picture."""
    needs = ["image"]

    def find(event: Any, what: str) -> list[tuple[int, int, int, int]]:
        return blobs(decode(event["image"]), HUES[what], least=3)

    @operator(cost=3.0, selectivity=0.1, needs=needs, variables=[])
    def chase_pattern(event: Any, hunter: str, hunted: str) -> bool:
        """One is close behind the other in the same lane."""
        behind, ahead = find(event, hunter), find(event, hunted)
        return any(abs(a[1] - b[1]) < 8 and 0 < b[0] - a[0] < NEAR for a in behind for b in ahead)

    @operator(cost=4.0, selectivity=0.3, needs=needs)
    def mob_pattern(event: Any, people: Any) -> Iterable[tuple[int]] | bool:
        """The size of the largest group of people who stand close together."""
        largest = _largest_group(find(event, "pedestrian"))
        return [(largest,)] if people is VAR else bool(largest == people)

    @operator(cost=3.0, selectivity=0.2, needs=needs, variables=[])
    def traffic_pattern(event: Any, kind: str) -> bool:
        """`congestion`: many cars; `accident`: cars that stick in each other."""
        cars = find(event, "car")
        if kind == "congestion":
            return len(cars) >= CONGESTED
        return any(min(width, height) > 20 for _, _, width, height in cars)

    def counting(name: str, what: str) -> Operator:
        @operator(name=name, cost=3.0, selectivity=0.9, needs=needs)
        def count(event: Any, n: Any) -> Iterable[tuple[int]] | bool:
            found = len(find(event, what))
            return [(found,)] if n is VAR else bool(found == n)

        return count

    things = ("pedestrian", "police_car", "tour_boat", "coast_guard_boat")
    return [chase_pattern, mob_pattern, traffic_pattern, *(counting(f"{thing}_count", thing) for thing in things)]


def _largest_group(boxes: list[tuple[int, int, int, int]]) -> int:
    left, largest = set(range(len(boxes))), 0
    while left:
        reached, size = [left.pop()], 0
        while reached:
            x, y, *_ = boxes[reached.pop()]
            size += 1
            near = {j for j in left if abs(boxes[j][0] - x) <= CROWD and abs(boxes[j][1] - y) <= CROWD}
            left -= near
            reached += near
        largest = max(largest, size)
    return largest


def scenes(count: int, rng: np.random.Generator) -> Iterator[Scene]:
    """Scenes of all kinds, each with the subscriptions that it should match."""
    kinds = [
        Scene("Bronx", chase=True, cars=3, expected=frozenset({"S1"})),
        Scene("Bronx", mob=60, cars=2, expected=frozenset({"S2"})),
        Scene("Bronx", mob=30, cars=2),
        Scene("Times Square", cars=20, pedestrians=300, expected=frozenset({"S3"})),
        Scene("Times Square", cars=20, pedestrians=100),
        Scene("Bronx", cars=18, accident=True, police_cars=1, expected=frozenset({"S4"})),
        Scene("Bronx", cars=18, accident=True, police_cars=3),
        Scene("Liberty Island", tour_boats=5, coast_guard_boats=2, expected=frozenset({"S5"})),
        Scene("Liberty Island", tour_boats=4, coast_guard_boats=2),
        Scene("Times Square", cars=1, chase=True),
        Scene("Bronx", pedestrians=20),
    ]
    for i in range(count):
        yield kinds[i % len(kinds)] if i < len(kinds) else kinds[int(rng.integers(len(kinds)))]


def stream(count: int, seed: int = 1) -> tuple[list[Scene], Columns]:
    """The scenes, and the events as columns."""
    rng = np.random.default_rng(seed)
    made = list(scenes(count, rng))
    spots = [PLACES[s.place] for s in made]
    columns = Columns.of(
        "drone",
        {
            "longitude": ("double", [x for x, _ in spots]),
            "latitude": ("double", [y for _, y in spots]),
            "image": ("binary", [draw(s, rng) for s in made]),
        },
    )
    return made, columns


def match(columns: Columns, schedule: str = "greedy") -> tuple[OperatorEngine, OperatorIndex, Outcome]:
    gazetteer = Gazetteer.from_geojson(NEW_YORK)
    engine = OperatorEngine([*spatial_operators(gazetteer), *drone_operators()], schedule=schedule)
    index = engine.compile([parse_body(text) for text in SUBSCRIPTIONS.values()])
    return engine, index, engine.run(index, columns, trace=True)


def chains(engine: OperatorEngine, index: OperatorIndex) -> Diagram:
    """The subscriptions as linked chains, in the order of evaluation (figure 3 of the paper)."""
    names = list(SUBSCRIPTIONS)
    linked = chains_of(index, engine.learned(index))
    return linked_chains("chains", [(names[s], [str(index.predicates[t]) for t in ts]) for s, ts in linked.items()])


def main(folder: Path | None) -> None:
    made, columns = stream(44)
    names = list(SUBSCRIPTIONS)
    for schedule in ("naive", "sequential", "suborder", "greedy"):
        _, _, outcome = match(columns, schedule)
        print(f"{schedule:>10}: {len(outcome.hits)} matches, {outcome.calls / len(made):.2f} calls an event")
    engine, index, outcome = match(columns)
    bindings = outcome.hits.binding or []
    for event, slot, binding in list(zip(outcome.hits.event, outcome.hits.slot, bindings, strict=True))[:6]:
        print(f"event {event} ({made[event].place}) matches {names[slot]} {binding}")
    print("\nThe last event, step by step:")
    print(evaluation(index, outcome.asked[len(made) - 1], names))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "chains.svg").write_text(chains(engine, index).svg(), "utf-8")
        for i in range(11):
            (folder / f"event-{i}.png").write_bytes(columns[("image",)].value(i))  # type: ignore[arg-type]  # a BINARY column
        print(f"\nPictures are in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
