"""Statements as pyoxigraph has them, for those who ask it by SPARQL."""

from __future__ import annotations

from typing import Any

import pyoxigraph as ox

from headgate.graphs.terms import Literal, Term


def quad(subject: Term, predicate: str, object_: Term) -> Any:
    def node(term: Term) -> Any:
        if isinstance(term, Literal):
            if term.language is not None:
                return ox.Literal(term.lexical, language=term.language)
            return ox.Literal(term.lexical, datatype=ox.NamedNode(term.datatype[1:-1]))
        return ox.BlankNode(term[2:]) if term.startswith("_:") else ox.NamedNode(term[1:-1])

    return ox.Quad(node(subject), node(predicate), node(object_))
