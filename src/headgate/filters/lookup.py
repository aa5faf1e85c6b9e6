"""What a batch is looked up in: the cells of every attribute, the text tests, and the atoms evaluated as vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from headgate.filters.texts import TextLiterals
from headgate.language import ast
from headgate.language.ast import Path
from headgate.predicates.cells import Cells
from headgate.predicates.normal import Lit


@dataclass(frozen=True)
class Lookup:
    cells: Mapping[int, Cells]
    """By attribute number, as are the rest."""
    tests: Mapping[int, list[ast.Node]]
    vectors: list[Lit]
    paths: Mapping[int, Path]

    @cached_property
    def texts(self) -> dict[int, TextLiterals]:
        """The automata of the text tests. They are no arrays, so every process builds its own, when it first needs it."""
        return {a: TextLiterals.build(tests) for a, tests in self.tests.items()}

    @cached_property
    def needs(self) -> frozenset[Path]:
        read = {n.path for lit in self.vectors for n in ast.walk(lit.atom) if isinstance(n, ast.Attribute)}
        return frozenset(read | set(self.paths.values()))
