"""Spatial operators over a gazetteer: is the event in a place, near it, how far from it (DEBS 2007, section 2.1.2).

A gazetteer is a table of named shapes, from GeoJSON or from SQLite. Containment is planar in longitude and latitude;
distances are geodesic on the WGS 84 ellipsoid, from the event's position to the nearest point of the shape. Needs
shapely and pyproj.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from headgate.errors import EnvironmentProblem, UsageError
from headgate.language.catalogue import nearest
from headgate.operators.registry import VAR, Operator, operator


class Gazetteer:
    """Named shapes, in longitude and latitude."""

    def __init__(self, shapes: Mapping[str, Any]) -> None:
        """`shapes` holds GeoJSON geometries or shapely ones."""
        self._given = dict(shapes)

    @classmethod
    def from_geojson(cls, source: str | Path | Mapping[str, Any], name: str = "name") -> Gazetteer:
        """From a FeatureCollection: its path, or the object itself; `name` is the property that names a feature."""
        read = json.loads(Path(source).read_text("utf-8")) if isinstance(source, str | Path) else source
        shapes: dict[str, Any] = {}
        for feature in read.get("features", ()):
            called = (feature.get("properties") or {}).get(name)
            if called is None:
                raise UsageError(f"a feature has no property {name}", "say which property names the places")
            shapes[str(called)] = feature["geometry"]
        return cls(shapes)

    @classmethod
    def from_sqlite(cls, path: str | Path, query: str = "SELECT name, geometry FROM places") -> Gazetteer:
        """From a query that gives names and geometries, these as GeoJSON text."""
        with closing(sqlite3.connect(f"file:{Path(path)}?mode=ro", uri=True)) as connection:
            return cls({str(name): json.loads(geometry) for name, geometry in connection.execute(query)})

    @cached_property
    def _shapes(self) -> dict[str, Any]:
        shape = _shapely().geometry.shape
        made = {name: shape(s) if isinstance(s, Mapping) else s for name, s in self._given.items()}
        for s in made.values():
            _shapely().prepare(s)
        return made

    def __iter__(self) -> Any:
        return iter(self._given)

    def shape(self, place: str) -> Any:
        found = self._shapes.get(place)
        if found is None:
            raise UsageError(f"the gazetteer has no place {place}", nearest(place, self._shapes, "add it"))
        return found

    def contains(self, place: str, longitude: float, latitude: float) -> bool:
        """Inside or on the border."""
        return bool(self.shape(place).covers(_shapely().Point(longitude, latitude)))

    def distance(self, place: str, longitude: float, latitude: float) -> float:
        """Metres to the nearest point of the place; 0 inside it."""
        shape = self.shape(place)
        if shape.covers(_shapely().Point(longitude, latitude)):
            return 0.0
        # The nearest point is sought where a degree is as long in both directions, then measured on the ellipsoid.
        squeeze = max(0.01, math.cos(math.radians(latitude)))
        affine = _shapely().affinity.affine_transform
        flat = affine(shape, [squeeze, 0, 0, 1, 0, 0])
        here = _shapely().Point(longitude * squeeze, latitude)
        near = _shapely().ops.nearest_points(flat, here)[0]
        return float(_geodesic().inv(longitude, latitude, near.x / squeeze, near.y)[2])


@lru_cache(maxsize=1)
def _shapely() -> Any:
    try:
        for part in ("affinity", "geometry", "ops"):
            import_module(f"shapely.{part}")
        return import_module("shapely")
    except ImportError:
        raise EnvironmentProblem("spatial operators need shapely", "install headgate[operators]") from None


@lru_cache(maxsize=1)
def _geodesic() -> Any:
    try:
        return import_module("pyproj").Geod(ellps="WGS84")
    except ImportError:
        raise EnvironmentProblem("distances need pyproj", "install headgate[operators]") from None


def spatial_operators(gazetteer: Gazetteer, longitude: str = "longitude", latitude: str = "latitude") -> list[Operator]:
    """`loc_in(place)`, `loc_within(place, metres)` and `distance_from(place, ?metres)` for events with a position."""
    needs = [longitude, latitude]

    def position(event: Any) -> tuple[float, float] | None:
        x, y = event[longitude], event[latitude]
        return None if x is None or y is None else (float(x), float(y))

    @operator(cost=0.05, needs=needs, pure=True, variables=["place"])
    def loc_in(event: Any, place: Any) -> bool | Iterable[tuple[str]]:
        """The event is in the place; a variable is bound to every place that it is in."""
        here = position(event)
        if place is VAR:
            return [(name,) for name in gazetteer if here is not None and gazetteer.contains(name, *here)]
        return here is not None and gazetteer.contains(place, *here)

    @operator(cost=0.1, needs=needs, pure=True, variables=[])
    def loc_within(event: Any, place: str, metres: float) -> bool:
        """The event is at most so many metres from the place."""
        here = position(event)
        return here is not None and gazetteer.distance(place, *here) <= metres

    @operator(cost=0.1, needs=needs, pure=True, variables=["metres"])
    def distance_from(event: Any, place: str, metres: Any) -> bool | Iterable[tuple[float]]:
        """Binds the distance to the place; with a number it asks for exactly that distance."""
        here = position(event)
        if here is None:
            return False
        found = gazetteer.distance(place, *here)
        return [(found,)] if metres is VAR else bool(found == metres)

    return [loc_in, loc_within, distance_from]
