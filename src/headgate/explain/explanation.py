"""What an explanation holds, whatever the family of the subscription, and how it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.pictures import Picture

_WORDS = {True: "true", False: "false", None: "unknown"}


@dataclass(frozen=True, slots=True)
class Atom:
    """One condition of the text and its value on the event; None is unknown."""

    text: str
    truth: bool | None
    values: Mapping[str, Any]
    """The attributes it reads."""
    note: str = ""
    """Of a call or a GRAPH: what it answered, or why it was not asked."""

    def __str__(self) -> str:
        told = [f"{k} = {_shown(v)}" for k, v in self.values.items()]
        if self.note:
            told.append(self.note)
        return f"{_WORDS[self.truth]:<8} {self.text}" + (f"   [{', '.join(told)}]" if told else "")


@dataclass(frozen=True, slots=True)
class Explanation:
    subscription: str
    text: str
    matched: bool | None
    """None where no event was given."""
    atoms: tuple[Atom, ...] = ()
    blocking: tuple[str, ...] = ()
    """For a miss: what would have to change. For a match: what it hangs on."""
    lane: str = ""
    """Where the engine evaluates it, and why there."""
    story: tuple[str, ...] = ()
    """What happened, line by line: the calls in their order, the statements of a graph, the fate of every run."""
    pictures: tuple[Picture, ...] = ()

    @property
    def graphviz(self) -> str:
        """The pictures as Graphviz DOT, one graph after the other."""
        return "\n".join(p.graphviz for p in self.pictures)

    @property
    def mermaid(self) -> str:
        """The pictures as Mermaid, an empty line between them."""
        return "\n\n".join(p.mermaid for p in self.pictures)

    def __str__(self) -> str:
        verdict = {True: " matches", False: " does not match", None: ""}[self.matched]
        lines = [f"{self.subscription}{verdict}: {self.text}"]
        lines += [f"  {atom}" for atom in self.atoms]
        if self.blocking:
            lines.append("  it hangs on:" if self.matched else "  it would match if this changed:")
            lines += [f"    {b}" for b in self.blocking]
        lines += [f"  {line}" for line in self.story]
        if self.lane:
            lines.append(f"  evaluated: {self.lane}")
        return "\n".join(lines)


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
