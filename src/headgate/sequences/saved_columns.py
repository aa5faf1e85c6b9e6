"""The columns of a saved index of sequences; `saved.py` fills and reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.schema import Schema
from headgate.sequences.publish_levels import Known
from headgate.sequences.static import StaticIndex
from headgate.sequences.tables import Ints


@dataclass(frozen=True)
class Nodes:
    """Predicates by number: each is a skeleton, and a row of constants where that has holes. A skeleton's constants are
    columns: one array for each hole, or a tuple where no array can hold them."""

    skeletons: Ints
    """Of each node: the number of the skeleton among what is shared."""
    rows: Ints
    constants: Mapping[int, tuple[Any, ...]]
    """By skeleton."""


@dataclass(frozen=True)
class Spines:
    """Each an outline without predicates, and the numbers of these, as many as the outline has."""

    outlines: Ints
    starts: Ints
    """Numbers of what is shared: where `$` starts, one for each step."""
    start_from: Ints
    nodes: Ints
    node_from: Ints


@dataclass(frozen=True)
class SavedAutomaton:
    """Columns of targets, states and edges, named by the fields below; the parts of a target that repeat what stands
    before it are left out."""

    targets: Ints
    states: Ints
    edges: Ints
    accept_from: Ints
    accepts: Ints


@dataclass(frozen=True)
class SavedLevel:
    streams: tuple[str, ...]
    schemas: tuple[Schema, ...]
    columns: tuple[Mapping[tuple[str, ...], int], ...]
    texts: Any
    """Arrow: the literals, by code."""
    tables: tuple[Any, ...]
    end_place: Ints
    end_fold: Ints
    folds: tuple[int, ...]
    """Numbers of what is shared."""
    accept_from: Ints
    accepts: Ints
    producer_spine: Ints
    producer_streams: Ints
    producer_mode: Ints
    producer_quota: Ints
    producer_gives: Ints
    subscriber_from: Ints
    subscribers: Ints
    unions: tuple[int, ...]
    slow: Mapping[int, str]
    statics: Mapping[int, tuple[StaticIndex, Ints]]
    sides: Mapping[str, tuple[StaticIndex | None, ...]]
    predicates: int
    starting: Ints
    open_streams: Ints
    watches_time: bool
    compiled: SavedAutomaton
    interpreted: SavedAutomaton
    signatures: tuple[Any, Any]
    """Arrow."""


@dataclass(frozen=True)
class SavedIndex:
    names: Any
    """Arrow."""
    modes: Ints
    quotas: Ints
    spine_of: Ints
    alive: NDArray[np.bool_]
    streams: Mapping[str, Schema]
    known: Known
    nodes: Nodes
    spines: Spines
    shared: Any
    """Arrow: what shapes have in common, a text each."""
    levels: tuple[SavedLevel, ...]
