"""The RSS experiment of the Cayuga paper (section 4.2, table 5): 415 sites, 26,623 items in the order of publication.

The feeds are not to be had any more, so the items are drawn: sites by Zipf, a few channels a site, popularity uniform
in 0..99. "A series of 3" is read as NEXT with theta on the site, and the duration of at most 100 events as DUR <= 100.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa

from headgate.language.catalogue import Catalogue
from headgate.schema import Schema
from headgate.sequences.shapes import Shapes
from headgate.sequences.spine import Spine

SITES, ITEMS, CHANNELS, MOST = 415, 26_623, 5, 100
SCHEMA = Schema.of("rss", {"website": "bigint", "channel": "bigint", "popularity": "bigint", "at": "bigint"}, "at")


@lru_cache(maxsize=1)
def stream() -> pa.Table:
    draw = np.random.default_rng(3)
    weights = 1.0 / np.arange(1, SITES + 1)
    site = draw.choice(SITES, ITEMS, p=weights / weights.sum())
    columns = {
        "website": site,
        "channel": site * CHANNELS + draw.integers(0, CHANNELS, ITEMS),
        "popularity": draw.integers(0, MOST, ITEMS),
        "at": np.arange(ITEMS, dtype=np.int64),
    }
    return pa.table(columns)


def _star(source: str) -> str:
    return " ".join(("SELECT * FROM", source))


def stateless(w: int, x: int) -> str:
    return _star(f"FILTER {{website = {w} AND popularity > {x}}} (rss)")


def concatenation(w: int, x: int) -> str:
    one = f"website = {w} AND popularity > {x}"
    following = f"NEXT {{{one} AND DUR <= 100}} rss"
    return _star(f"FILTER {{{one}}} (rss) {following} {following}")


def parameterization(w: int, x: int) -> str:
    following = f"NEXT {{website = {w} AND $2.channel = $1.channel AND popularity > $1.popularity AND DUR <= 100}} rss"
    return _star(f"FILTER {{website = {w} AND popularity > {x}}} (rss) {following} {following}")


def iteration(w: int, x: int) -> str:
    theta = f"website = {w} AND $2.channel = $1.channel AND popularity > $.popularity AND DUR <= 100"
    return _star(f"FILTER {{website = {w} AND popularity > {x}}} (rss) FOLD {{{theta}}} rss")


TEMPLATES: dict[str, Callable[[int, int], str]] = {
    "Stateless": stateless,
    "Concatenation": concatenation,
    "Parameterization": parameterization,
    "Iteration": iteration,
}


def spines(template: str, count: int) -> list[Spine]:
    draw = np.random.default_rng(4)
    shapes = Shapes(Catalogue(streams={"rss": SCHEMA}))
    chosen = zip(draw.integers(0, SITES, count).tolist(), draw.integers(0, MOST, count).tolist(), strict=True)
    return [shapes.spine(TEMPLATES[template](w, x)) for w, x in chosen]
