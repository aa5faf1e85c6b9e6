"""Why an event cost what it did: the order of evaluation, what each call decided and saved; and the chains as a
picture.

The picture is SVG, DOT or Mermaid, as figure 3 of the paper draws it: a column for each subscription in the order of
evaluation, the predicate most decisive for its cost on top, dashed links between equal predicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import isnan

from headgate.operators.answer import ERROR, FALSE, TRUE
from headgate.operators.chains import LinkedChains
from headgate.operators.engine import Asked
from headgate.operators.index import OperatorIndex
from headgate.operators.kernels import ARGUMENT, KIND, LITERAL
from headgate.operators.learned import Learned

_TRUTH = {TRUE: "TRUE", FALSE: "FALSE", ERROR: "failed"}
WIDTH, HEIGHT, GAP, MARGIN = 190, 34, 26, 20
LONGEST = 26


def evaluation(index: OperatorIndex, asked: Sequence[Asked], names: Sequence[str] | None = None) -> str:
    """The calls of one event, in order, each with what it decided; `names` are the subscriptions by slot."""
    lines = []
    for i, step in enumerate(asked, start=1):
        rows = f", {len(step.answer.rows)} row(s)" if step.answer.rows else ""
        how = (
            "shared call" if not step.called else "kept" if isnan(step.milliseconds) else f"{step.milliseconds:.2f} ms"
        )
        line = f"{i}. {index.predicates[step.predicate]} -> {_TRUTH[step.answer.truth]}{rows} ({how})"
        if step.decided:
            shown = [names[s] if names is not None else str(s) for s in step.decided[:5]]
            more = f" and {len(step.decided) - 5} more" if len(step.decided) > 5 else ""
            line += f"; decided {', '.join(shown)}{more}"
        if step.saved:
            line += f"; saved {step.saved} predicate(s)"
        lines.append(line)
    calls = sum(step.called for step in asked)
    lines.append(f"{calls} call(s), {len(index.predicates)} predicate(s) in the book")
    return "\n".join(lines)


def chains_of(index: OperatorIndex, learned: Learned, names: Sequence[str] | None = None) -> LinkedChains[int]:
    """The subscriptions of an index as linked chains, with what is known of their predicates now."""
    chains: LinkedChains[int] = LinkedChains(
        lambda t: float(learned.chance[t]), lambda t: float(learned.cost[t]), lambda t: str(index.predicates[t])
    )
    program = index.program
    for slot in range(len(index)):
        nodes = program.nodes[program.start[slot] : program.start[slot + 1]]
        literals = nodes[nodes[:, KIND] == LITERAL, ARGUMENT].tolist()
        chains.insert(names[slot] if names is not None else str(slot), literals)
    chains.reorder()
    return chains


def picture(index: OperatorIndex, chains: LinkedChains[int]) -> str:
    """The linked chains as SVG."""
    columns = {chain: i for i, chain in enumerate(chains)}
    deepest = max((len(chains[c]) for c in columns), default=0)
    width = 2 * MARGIN + max(1, len(columns)) * (WIDTH + 2 * GAP)
    height = 2 * MARGIN + (deepest + 1) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for link in chains.links():
        (x1, y1), (x2, y2) = _at(columns[link.left], link.places[0]), _at(columns[link.right], link.places[1])
        parts.append(
            f'<line x1="{x1 + WIDTH}" y1="{y1 + HEIGHT // 2}" x2="{x2}" y2="{y2 + HEIGHT // 2}" '
            'stroke="#b03a2e" stroke-width="1.5" stroke-dasharray="5 4"/>'
        )
    for chain, column in columns.items():
        for place, t in enumerate(chains[chain]):
            x, y = _at(column, place)
            if place:
                parts.append(
                    f'<line x1="{x + WIDTH // 2}" y1="{y - GAP}" x2="{x + WIDTH // 2}" y2="{y}" stroke="#555"/>'
                )
            parts.append(
                f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#eaf2f8" stroke="#555"/>'
            )
            parts.append(_label(x + WIDTH // 2, y + HEIGHT // 2 + 4, str(index.predicates[t])))
        x, y = _at(column, len(chains[chain]))
        parts.append(_label(x + WIDTH // 2, y + 6, chain, bold=True))
    return "\n".join([*parts, "</svg>"])


def graphviz(index: OperatorIndex, chains: LinkedChains[int]) -> str:
    """The linked chains in DOT: a column for each subscription, dashed links between equal predicates."""
    lines = ["digraph chains {", "  node [shape=box, style=rounded];"]
    for node, label, bold in _boxes(index, chains):
        lines.append(f'  {node} [label="{_quoted(label)}"{", shape=plaintext" if bold else ""}];')
    lines += [f"  {above} -> {below};" for above, below in _steps(chains)]
    lines += [
        f"  {left} -> {right} [style=dashed, dir=none, color=firebrick, constraint=false];"
        for left, right in _links(chains)
    ]
    return "\n".join([*lines, "}"])


def mermaid(index: OperatorIndex, chains: LinkedChains[int]) -> str:
    """The same picture for Mermaid."""
    lines = ["flowchart TD"]
    for node, label, bold in _boxes(index, chains):
        lines.append(f'  {node}(["{_escaped(label)}"])' if bold else f'  {node}["{_escaped(label)}"]')
    lines += [f"  {above} --> {below}" for above, below in _steps(chains)]
    lines += [f"  {left} -.- {right}" for left, right in _links(chains)]
    return "\n".join(lines)


def _boxes(index: OperatorIndex, chains: LinkedChains[int]) -> Iterator[tuple[str, str, bool]]:
    """Node, label, and whether it names a subscription, which stands below its predicates."""
    for column, chain in enumerate(chains):
        for place, t in enumerate(chains[chain]):
            yield f"c{column}_{place}", str(index.predicates[t]), False
        yield f"c{column}_{len(chains[chain])}", chain, True


def _steps(chains: LinkedChains[int]) -> Iterator[tuple[str, str]]:
    for column, chain in enumerate(chains):
        for place in range(len(chains[chain])):
            yield f"c{column}_{place}", f"c{column}_{place + 1}"


def _links(chains: LinkedChains[int]) -> Iterator[tuple[str, str]]:
    columns = {chain: i for i, chain in enumerate(chains)}
    for link in chains.links():
        yield f"c{columns[link.left]}_{link.places[0]}", f"c{columns[link.right]}_{link.places[1]}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")


def _at(column: int, place: int) -> tuple[int, int]:
    return MARGIN + GAP + column * (WIDTH + 2 * GAP), MARGIN + place * (HEIGHT + GAP)


def _label(x: int, y: int, text: str, bold: bool = False) -> str:
    short = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" text-anchor="middle"{weight}><title>{escape(text)}</title>{escape(short)}</text>'
