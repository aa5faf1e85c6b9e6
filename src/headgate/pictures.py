"""Pictures of nodes and arrows: an automaton, a decision diagram, a matching tree, linked chains, a cover.

One picture can be written for Graphviz, for Mermaid, or drawn as SVG without any program. In SVG nodes stand in layers
by their distance from those that nothing points to, and in a layer by the middle of what points to them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

_LONGEST = 120
_MERMAID = {
    "box": ("[", "]"),
    "ellipse": ("([", "])"),
    "doublecircle": ("([", "])"),
    "circle": ("((", "))"),
    "plaintext": ("[/", "/]"),
}
"""By Graphviz's name of a shape, what Mermaid puts around the label."""
_ARROWS = {"solid": "-->", "dashed": "-.->", "dotted": "==>"}
_LETTER, _ROW, _GAP, _LINE = 7.2, 84, 26, 34


@dataclass(frozen=True, slots=True)
class Node:
    label: str
    shape: str = "box"
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    source: int
    target: int
    label: str = ""
    style: str = "solid"


@dataclass(slots=True)
class Picture:
    title: str
    sideways: bool = False
    """From left to right, where Graphviz or Mermaid draws it."""
    nodes: list[Node] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    """Between numbers of nodes."""

    def node(self, label: str, shape: str = "box", dashed: bool = False) -> int:
        short = label if len(label) <= _LONGEST else label[: _LONGEST - 3] + "..."
        self.nodes.append(Node(short, shape, dashed))
        return len(self.nodes) - 1

    def arrow(self, source: int, target: int, label: str = "", style: str = "solid") -> None:
        self.arrows.append(Arrow(source, target, label, style))

    @property
    def graphviz(self) -> str:
        lines = [f"digraph {_dot(self.title)} {{", *(["  rankdir=LR;"] if self.sideways else [])]
        for i, n in enumerate(self.nodes):
            lines.append(f"  n{i} [label={_dot(n.label)}, shape={n.shape}{', style=dashed' if n.dashed else ''}];")
        for a in self.arrows:
            style = "" if a.style == "solid" else f", style={a.style}"
            lines.append(f"  n{a.source} -> n{a.target} [label={_dot(a.label)}{style}];")
        return "\n".join([*lines, "}"])

    @property
    def mermaid(self) -> str:
        lines = ["flowchart LR" if self.sideways else "flowchart TD"]
        for i, n in enumerate(self.nodes):
            left, right = _MERMAID[n.shape]
            lines.append(f'  n{i}{left}"{_mermaid(n.label)}"{right}')
        for a in self.arrows:
            label = f'|"{_mermaid(a.label)}"|' if a.label else ""
            lines.append(f"  n{a.source} {_ARROWS[a.style]}{label} n{a.target}")
        dashed = [f"n{i}" for i, n in enumerate(self.nodes) if n.dashed]
        if dashed:
            lines += ["  classDef dashed stroke-dasharray: 5 5", f"  class {','.join(dashed)} dashed"]
        return "\n".join(lines)

    def svg(self) -> str:
        """Drawn from top to bottom."""
        layers = self._layers()
        widths = [max(44.0, len(_cut(n.label)) * _LETTER + 22) for n in self.nodes]
        total = max((sum(widths[i] + _GAP for i in layer) for layer in layers), default=100.0) + _GAP
        place: dict[int, tuple[float, float]] = {}
        for depth, layer in enumerate(layers):
            x = (total - sum(widths[i] + _GAP for i in layer) + _GAP) / 2
            for i in layer:
                place[i] = (x + widths[i] / 2, 40 + depth * _ROW)
                x += widths[i] + _GAP
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
        parts += [_svg_arrow(a, place) for a in self.arrows]
        parts += [_svg_node(n, place[i], widths[i]) for i, n in enumerate(self.nodes)]
        return "\n".join([*parts, "</svg>"])

    def _layers(self) -> list[list[int]]:
        below: list[list[int]] = [[] for _ in self.nodes]
        above: list[list[int]] = [[] for _ in self.nodes]
        for a in self.arrows:
            if a.source != a.target:
                below[a.source].append(a.target)
                above[a.target].append(a.source)
        depth: dict[int, int] = {}
        numbers = range(len(self.nodes))
        for start in [*(i for i in numbers if not above[i]), *numbers]:
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
        layers: list[list[int]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
        for i in numbers:
            layers[depth[i]].append(i)
        for upper, layer in itertools.pairwise(layers):
            rank = {i: k for k, i in enumerate(upper)}
            layer.sort(key=lambda i: _middle([rank[p] for p in above[i] if p in rank]))
        return layers


def _svg_arrow(a: Arrow, place: Mapping[int, tuple[float, float]]) -> str:
    (x1, y1), (x2, y2) = place[a.source], place[a.target]
    dash = ' stroke-dasharray="5 4"' if a.style != "solid" else ""
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
    label = escape(_cut(a.label))
    return line + (f'<text x="{middle[0]:.0f}" y="{middle[1]:.0f}" fill="#234">{label}</text>' if label else "")


def _svg_node(n: Node, at: tuple[float, float], width: float) -> str:
    x, y = at
    radius = 3 if n.shape == "box" else 17
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


def _dot(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{quoted}"'


def _mermaid(text: str) -> str:
    for sign, word in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("\n", " ")):
        text = text.replace(sign, word)
    return text
