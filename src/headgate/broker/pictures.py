"""Pictures for the page: what an explanation draws, and who covers whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from headgate.broker.dry_run import Wanted, book_of
from headgate.covering.coverset import CoverSet
from headgate.covering.parse_boxes import read_union
from headgate.errors import HeadgateError, UsageError
from headgate.pictures import Picture
from headgate.store.records import Change

_DRAFT = "draft"
TITLES = {"automaton": "automaton of ", "tree": "matching tree of ", "diagram": ""}
"""By the kind of a picture, what the title of an explanation's picture begins with."""


def drawn(kind: str, changes: Sequence[Change], draft: Wanted, event: Mapping[str, Any]) -> str:
    """The picture of a kind that explaining a text gives, on an event where it needs one, as SVG."""
    book = book_of(changes).add(_DRAFT, draft.text, on=draft.stream, missing=draft.missing)
    explanation = book.compile().explain(_DRAFT, dict(event) if kind == "tree" else None)
    for picture in explanation.pictures:
        if picture.title == TITLES[kind] + _DRAFT:
            return picture.svg()
    raise UsageError(f"this subscription has no {kind}", "filters have a diagram, sequences an automaton, GRAPH a tree")


def cover(changes: Sequence[Change], names: Mapping[str, str | None]) -> str:
    """Who covers whom: a subscription below others need be tested only when one of them matches. As SVG."""
    book = book_of(changes)
    picture = Picture("cover")
    nodes = {id: picture.node(names.get(id) or book[id].text, "ellipse") for id in book}
    for stream in dict.fromkeys(book[id].stream for id in book):
        covers = CoverSet(None)
        for id in book:
            if book[id].stream != stream:
                continue
            with suppress(HeadgateError):
                covers.add_union(id, read_union(book[id].text, book[id].missing, book.streams[stream]))
        for covered, coverers in covers.gates.items():
            for by in coverers:
                picture.arrow(nodes[str(by)], nodes[str(covered)], "covers")
    return picture.svg()
