"""Pictures for the page: what an explanation draws, and who covers whom."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from headgate.covering.coverset import CoverSet
from headgate.covering.parse_boxes import read_union
from headgate.errors import HeadgateError, UsageError
from headgate.pictures import Picture
from headgate.plan import Entry
from headgate.schema import Schema
from headgate.subscriptions import Subscriptions

TITLES = {"automaton": "automaton of ", "tree": "matching tree of ", "diagram": ""}
"""By the kind of a picture, what the title of an explanation's picture begins with."""


def drawn(kind: str, book: Subscriptions, name: str, event: Mapping[str, Any] | None = None) -> Picture:
    """The picture of a kind that explaining a subscription gives, on an event where it needs one."""
    explanation = book.compile().explain(name, dict(event) if event is not None else None)
    for picture in explanation.pictures:
        if picture.title == TITLES[kind] + name:
            return picture
    raise UsageError(f"this subscription has no {kind}", "filters have a diagram, sequences an automaton, GRAPH a tree")


def cover(entries: Mapping[str, Entry], schemas: Mapping[str, Schema], names: Mapping[str, str]) -> Picture:
    """Who covers whom: a subscription below others need be tested only when one of them matches."""
    picture = Picture("cover")
    nodes = {id: picture.node(names.get(id) or entry.text, "ellipse") for id, entry in entries.items()}
    for stream in dict.fromkeys(e.stream for e in entries.values()):
        covers = CoverSet(None)
        for id, entry in entries.items():
            if entry.stream != stream:
                continue
            with suppress(HeadgateError):
                covers.add_union(id, read_union(entry.text, entry.missing, schemas[stream]))
        for covered, coverers in covers.gates.items():
            for by in coverers:
                picture.arrow(nodes[str(by)], nodes[str(covered)], "covers")
    return picture
