"""RDF text to triples, by pyoxigraph; the one place that knows it.

Anonymous blank nodes get names by the order in which they appear, so that reading the same text twice gives the same
triples: pyoxigraph names them at random. Labelled ones keep their label, `H` above all.

Events come from strangers: the readers of JSON-LD and RDF/XML take time that grows with the square of the nesting, and
expand entities without end, so both have a limit that is checked first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.parsers import expat

from headgate.errors import EnvironmentProblem, HeadgateError, UsageError
from headgate.graphs.terms import Literal, Term

Triple = tuple[str, str, Term]

FORMATS = {
    "turtle": "TURTLE",
    "n-triples": "N_TRIPLES",
    "n-quads": "N_QUADS",
    "json-ld": "JSON_LD",
    "rdf-xml": "RDF_XML",
}
SUFFIXES = {
    ".ttl": "turtle",
    ".nt": "n-triples",
    ".nq": "n-quads",
    ".jsonld": "json-ld",
    ".json": "json-ld",
    ".rdf": "rdf-xml",
    ".owl": "rdf-xml",
    ".xml": "rdf-xml",
}
DEPTH = 200
"""How deep objects, arrays and elements may be nested."""
EXPANDED = 10_000_000
"""How many characters the entities of a document may stand for."""
_QUOTED = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LABEL = re.compile(r"_:([\w.-]*\w)")
_RANDOM = re.compile(r"[0-9a-f]{30,32}")
_LINE_OF_QUADS = re.compile(r"\s*(?:<[^>]*>|_:\S+)\s+<[^>]*>\s+(?:<[^>]*>|_:\S+|\".*\"\S*)\s+(?:<[^>]*>|_:\S+)\s*\.")


class BadRdf(HeadgateError):
    """Text that is not RDF in the format it claims."""

    code = "rdf"


@lru_cache(maxsize=1)
def _pyoxigraph() -> Any:
    try:
        import pyoxigraph
    except ImportError:
        raise EnvironmentProblem("reading RDF needs pyoxigraph", "pip install headgate[graphs]") from None
    return pyoxigraph


def guess(text: str) -> str:
    """The format of an event's text. Turtle reads N-Triples too, so only JSON-LD, RDF/XML and N-Quads need telling."""
    head = text.lstrip("\ufeff \t\r\n")[:1000]
    if head[:1] in ("{", "["):
        # `[ a :Selling ]` is Turtle; JSON has a text, a bracket or the end behind its first bracket.
        return "turtle" if head[0] == "[" and head[1:].lstrip()[:1] not in ("{", "]", "[") else "json-ld"
    if head.startswith(("<?xml", "<rdf:RDF")):
        return "rdf-xml"
    return "n-quads" if _LINE_OF_QUADS.match(head) else "turtle"


def read(text: str, format: str | None = None, base: str | None = None) -> list[Triple]:
    """The triples of a text, each once, in the order of the text. The graph a quad belongs to is ignored."""
    ox = _pyoxigraph()
    name = format or guess(text)
    if name not in FORMATS:
        raise UsageError(f"{name!r} is no RDF format", f"the formats are {', '.join(FORMATS)}")
    if name == "json-ld":
        _check_json(text)
    elif name == "rdf-xml":
        _check_xml(text)
    names: dict[str, str] = {}
    written: set[str] = set()

    def blank(label: str) -> str:
        found = names.get(label)
        if found is None:
            found = label
            if _RANDOM.fullmatch(label):
                written.update(() if written else _LABEL.findall(text), ("H",))
                if label not in written:
                    found = f"b{len(names)}"
                    while found in written:
                        found += "_"
            found = names[label] = "_:" + found
        return found

    triples: dict[Triple, None] = {}
    blank_node, named_node, literal = ox.BlankNode, ox.NamedNode, ox.Literal
    try:
        for quad in ox.parse(text, getattr(ox.RdfFormat, FORMATS[name]), base_iri=base):
            subject, predicate, value = quad.subject, quad.predicate, quad.object
            kind = type(value)
            if kind is blank_node:
                object_: Term = blank(value.value)
            elif kind is named_node:
                object_ = str(value)
            elif kind is literal:
                object_ = Literal(value.value, str(value.datatype), value.language)
            else:
                raise BadRdf("a statement about a statement has no place in an event graph")
            source = blank(subject.value) if type(subject) is blank_node else str(subject)
            triples[source, str(predicate), object_] = None
    except (SyntaxError, ValueError) as problem:
        message = problem.msg if isinstance(problem, SyntaxError) and problem.msg else str(problem)
        raise BadRdf(f"the text is not {name}: {message}") from None
    return list(triples)


def _check_json(text: str) -> None:
    if text.count("{") + text.count("[") <= DEPTH:
        return
    depth = 0
    for sign in re.findall(r"[][{}]", _QUOTED.sub("", text)):
        depth += 1 if sign in "{[" else -1
        if depth > DEPTH:
            raise BadRdf(f"the JSON-LD is nested more than {DEPTH} levels deep")


def _check_xml(text: str) -> None:
    parser, depth, longest = expat.ParserCreate("utf-8"), 0, 0

    def start(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > DEPTH:
            raise BadRdf(f"the RDF/XML is nested more than {DEPTH} levels deep")

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def entity(name: str, parameter: bool, value: str | None, *_: object) -> None:
        nonlocal longest
        if parameter or value is None or "&" in value:
            raise BadRdf(f"the entity {name} is refused: it stands for other entities, or for a file")
        longest = max(longest, len(value))
        if longest * text.count("&") > EXPANDED:
            raise BadRdf(f"the entities stand for more than {EXPANDED:,} characters")

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = start, end, entity
    try:
        parser.Parse(text, True)
    except expat.ExpatError as problem:
        raise BadRdf(f"the text is not rdf-xml: {problem}") from None


def read_file(path: str | Path) -> list[Triple]:
    """The triples of a file; the format follows from its suffix."""
    file = Path(path)
    name = SUFFIXES.get(file.suffix.lower())
    if name is None:
        known = ", ".join(SUFFIXES)
        raise UsageError(f"the suffix of {file.name} names no RDF format", f"the suffixes are {known}")
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{file} cannot be read: {problem}") from None
    return read(text, name, file.resolve().as_uri())


def write(triples: Iterable[tuple[Term, str, Term]]) -> str:
    """N-Triples. For tests, peers and explanations."""
    return "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
