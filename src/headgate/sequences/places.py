"""Where an expression of a pattern stands, and what is bound there (docs/semantics.md, section 5, "Names")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.schema import Path, Schema, Type
from headgate.sequences.spine import Merged, Spine


@dataclass
class Bound:
    """A primary of the spine under construction: `key` heads the paths of its values."""

    alias: str
    key: str
    schema: Schema
    origin: str | Spine | Merged
    visible: bool = True
    accumulators: dict[str, Type | None] = field(default_factory=dict)

    def path(self, path: Path) -> Path | None:
        if len(path) == 1 and path[0] in self.accumulators:
            return ("@" + self.key[1:], path[0])
        return (self.key, *path) if has(self.schema, path) else None


def has(schema: Schema, path: Path) -> bool:
    return schema.get(path) is not None or not schema.declared


@dataclass
class Place:
    """Where an expression stands: what `$1`, `$2`, `$` and a bare name may reach from there."""

    left: list[Bound]
    incoming: Bound | None = None
    own: bool = False
    """In a FILTER over one primary: only that primary is seen and DUR is its own."""
    iteration: bool = False
    old: Mapping[str, Type | None] = field(default_factory=dict)
    """The aggregates of this FOLD, whose values before the iteration `$.name` gives."""
    init: bool = False
    """The start of an aggregate: every name means `$1` and may be absent there."""
