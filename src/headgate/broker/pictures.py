"""Pictures for the page: an automaton, a decision diagram, a matching tree, a cover; as SVG, without any program to draw it.

Explanations give their pictures as Graphviz text, which is read here. A picture is nodes and arrows. Nodes stand in
layers by their distance from those that nothing points to, and in a layer by the middle of what points to them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from headgate.covering.boxes import TooWide
from headgate.covering.coverset import CoverSet
from headgate.covering.parse_boxes import Source, checked, union_of
from headgate.errors import HeadgateError, UsageError
from headgate.plan import Entry
from headgate.schema import Schema
from headgate.subscriptions import Subscriptions

_LETTER, _ROW, _GAP, _LINE = 7.2, 84, 26, 34


@dataclass(frozen=True, slots=True)
class Node:
    id: str
    label: str
    round: bool = True
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    source: str
    target: str
    label: str = ""
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]

    def svg(self) -> str:
        """Drawn from top to bottom."""
        layers = self._layers()
        width = {n.id: max(44.0, len(_cut(n.label)) * _LETTER + 22) for n in self.nodes}
        total = max((sum(width[i] + _GAP for i in layer) for layer in layers), default=100.0) + _GAP
        place: dict[str, tuple[float, float]] = {}
        for depth, layer in enumerate(layers):
            x = (total - sum(width[i] + _GAP for i in layer) + _GAP) / 2
            for i in layer:
                place[i] = (x + width[i] / 2, 40 + depth * _ROW)
                x += width[i] + _GAP
        height = 40 + len(layers) * _ROW
        parts = [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {height}" width="{total:.0f}"'
                f' height="{height}" role="img" font-family="sans-serif" font-size="12">'
            ),
            f"<title>{escape(self.title)}</title>",
            (
                '<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
                '<path d="M0 0L10 5L0 10z" fill="#456"/></marker></defs>'
            ),
            '<rect width="100%" height="100%" fill="#fff"/>',
        ]
        parts += [self._arrow(a, place) for a in self.arrows if a.source in place and a.target in place]
        parts += [self._node(n, place[n.id], width[n.id]) for n in self.nodes]
        return "\n".join([*parts, "</svg>"])

    def _layers(self) -> list[list[str]]:
        below: dict[str, list[str]] = {n.id: [] for n in self.nodes}
        above: dict[str, list[str]] = {n.id: [] for n in self.nodes}
        for a in self.arrows:
            if a.source != a.target and a.source in below and a.target in below:
                below[a.source].append(a.target)
                above[a.target].append(a.source)
        depth: dict[str, int] = {}
        front = [n.id for n in self.nodes if not above[n.id]] or [n.id for n in self.nodes[:1]]
        for start in [*front, *(n.id for n in self.nodes)]:
            if start in depth:
                continue
            depth[start] = 0
            waiting = [start]
            while waiting:
                at = waiting.pop(0)
                for child in below[at]:
                    if child not in depth:
                        depth[child] = depth[at] + 1
                        waiting.append(child)
        layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
        for n in self.nodes:
            layers[depth[n.id]].append(n.id)
        for upper, layer in itertools.pairwise(layers):
            rank = {i: k for k, i in enumerate(upper)}
            layer.sort(key=lambda i: _middle([rank[p] for p in above[i] if p in rank]))
        return layers

    def _arrow(self, a: Arrow, place: Mapping[str, tuple[float, float]]) -> str:
        (x1, y1), (x2, y2) = place[a.source], place[a.target]
        dash = ' stroke-dasharray="5 4"' if a.dashed else ""
        if a.source == a.target:
            path = f"M{x1 + 14:.0f} {y1 - 15:.0f}c30 -26 44 30 4 26"
            middle = (x1 + 48, y1 - 14)
        else:
            up = 1 if y2 > y1 else -1
            level = abs(y2 - y1) < 1
            start, end = (y1, y2) if level else (y1 + 17 * up, y2 - 17 * up)
            bend = _ROW * 0.4 * (1 if level else 0)
            path = f"M{x1:.0f} {start:.0f}Q{(x1 + x2) / 2:.0f} {(start + end) / 2 + bend:.0f} {x2:.0f} {end:.0f}"
            middle = ((x1 + x2) / 2 + 4, (start + end) / 2 + bend / 2 + 4)
        line = f'<path d="{path}" fill="none" stroke="#456" stroke-width="1.3" marker-end="url(#a)"{dash}/>'
        said = escape(_cut(a.label))
        return line + (f'<text x="{middle[0]:.0f}" y="{middle[1]:.0f}" fill="#234">{said}</text>' if said else "")

    def _node(self, n: Node, at: tuple[float, float], width: float) -> str:
        x, y = at
        radius = 17 if n.round else 3
        dash = ' stroke-dasharray="5 4"' if n.dashed else ""
        return (
            f'<g><rect x="{x - width / 2:.0f}" y="{y - 17:.0f}" width="{width:.0f}" height="{_LINE}" rx="{radius}"'
            f' fill="#eef4fb" stroke="#357"{dash}/><text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">'
            f"{escape(_cut(n.label))}</text><title>{escape(n.label)}</title></g>"
        )


def _middle(ranks: Sequence[int]) -> float:
    return sum(ranks) / len(ranks) if ranks else 0.0


def _cut(text: str) -> str:
    return text if len(text) <= 48 else text[:45] + "..."


# -- what is drawn

_ID = r'"(?:[^"\\\\]|\\\\.)*"|\w+'
_EDGE = re.compile(rf"^\s*({_ID}) -> ({_ID})(?: \[(.*)\])?;$")
_NODE = re.compile(rf"^\s*({_ID}) \[(.*)\];$")
_ATTRIBUTE = re.compile(rf"(\w+)=({_ID})")


def read(title: str, graphviz: str) -> Picture:
    """A picture from the Graphviz text of an explanation: a node or an arrow a line."""
    nodes: dict[str, Node] = {}
    arrows = []
    for line in graphviz.splitlines():
        if found := _EDGE.match(line):
            said = _attributes(found[3] or "")
            dashed = said.get("style") in ("dashed", "dotted")
            arrows.append(Arrow(_plain(found[1]), _plain(found[2]), said.get("label", ""), dashed))
        elif (found := _NODE.match(line)) and found[1] != "node":
            id, said = _plain(found[1]), _attributes(found[2])
            nodes[id] = Node(id, said.get("label", id), said.get("shape") != "box", said.get("style") == "dashed")
    return Picture(title, tuple(nodes.values()), tuple(arrows))


def _attributes(text: str) -> dict[str, str]:
    return {name: _plain(value) for name, value in _ATTRIBUTE.findall(text)}


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


TITLES = {"automaton": "automaton of ", "tree": "matching tree of ", "diagram": ""}
"""By the kind of a picture, what the title of an explanation's picture begins with."""


def drawn(kind: str, book: Subscriptions, name: str, event: Mapping[str, Any] | None = None) -> Picture:
    """The picture of a kind that explaining a subscription gives, on an event where it needs one."""
    told = book.compile().explain(name, dict(event) if event is not None else None)
    for one in told.pictures:
        if one.title == TITLES[kind] + name:
            return read(one.title, one.graphviz)
    raise UsageError(f"this subscription has no {kind}", "filters have a diagram, sequences an automaton, GRAPH a tree")


def cover(entries: Mapping[str, Entry], schemas: Mapping[str, Schema], names: Mapping[str, str]) -> Picture:
    """Who covers whom: a subscription below others need be tested only when one of them matches."""
    nodes: list[Node] = []
    arrows: list[Arrow] = []
    for stream in dict.fromkeys(e.stream for e in entries.values()):
        found = CoverSet(None)
        for id, entry in entries.items():
            if entry.stream != stream:
                continue
            nodes.append(Node(id, names.get(id) or entry.text))
            try:
                (body,), schema = checked([Source(entry.text, entry.missing)], schemas[stream])
                found.add_union(id, union_of(body, entry.missing, schema))
            except (TooWide, HeadgateError):
                continue
        arrows += [Arrow(str(by), str(id), "covers") for id, coverers in found.gates.items() for by in coverers]
    return Picture("cover", tuple(nodes), tuple(arrows))
