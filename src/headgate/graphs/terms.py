"""RDF terms and the values of literals.

An IRI is the text `<...>` and a blank node the text `_:label`, as in N-Triples, so that they hash fast and print as
they are; a literal is a `Literal`. The value of a literal is what filters compare: numbers are BIGINT or DOUBLE as
everywhere in Headgate (a decimal with a fraction is read as DOUBLE), `xsd:date` and `xsd:dateTime` are instants in
microseconds UTC, text with a language tag is text. Datatypes are classes, ordered as XML Schema orders them.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from headgate.predicates.values import Instant

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
DAML = "http://www.daml.org/2001/03/daml+oil#"

STANDARD_PREFIXES = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}
TYPE = f"<{RDF}type>"
HOME = "_:H"
LITERAL_CLASS = f"<{RDFS}Literal>"
RESOURCE_CLASSES = (f"<{RDFS}Resource>",)
"""What everything belongs to."""
THING_CLASSES = (f"<{OWL}Thing>", f"<{DAML}Thing>")
"""What everything but a literal belongs to."""

STRING = f"<{XSD}string>"
LANG_STRING = f"<{RDF}langString>"
INTEGER = f"<{XSD}integer>"
DECIMAL = f"<{XSD}decimal>"
DOUBLE = f"<{XSD}double>"
BOOLEAN = f"<{XSD}boolean>"
DATE_TIME = f"<{XSD}dateTime>"

_DERIVED = """
    integer<decimal nonPositiveInteger<integer negativeInteger<nonPositiveInteger long<integer int<long short<int
    byte<short nonNegativeInteger<integer positiveInteger<nonNegativeInteger unsignedLong<nonNegativeInteger
    unsignedInt<unsignedLong unsignedShort<unsignedInt unsignedByte<unsignedShort normalizedString<string
    token<normalizedString language<token Name<token NCName<Name NMTOKEN<token ID<NCName IDREF<NCName ENTITY<NCName
    dateTimeStamp<dateTime yearMonthDuration<duration dayTimeDuration<duration
"""
DATATYPE_PARENTS: dict[str, str] = {
    f"<{XSD}{below}>": f"<{XSD}{above}>" for below, above in (pair.split("<") for pair in _DERIVED.split())
}
"""The derivations of XML Schema, part 2."""


class Literal(NamedTuple):
    """An RDF literal by its lexical form: equal terms are equal tuples. `datatype` is an IRI in angle brackets."""

    lexical: str
    datatype: str
    language: str | None = None

    def __str__(self) -> str:
        quoted = self.lexical.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        if self.language is not None:
            return f'"{quoted}"@{self.language}'
        return f'"{quoted}"' if self.datatype == STRING else f'"{quoted}"^^{self.datatype}'


Term = str | Literal

Value = bool | int | float | str | Instant
"""What a filter sees of a literal. Instants are of a type of their own, so they are never taken for numbers."""


class IllTyped(ValueError):
    """A lexical form that its datatype does not know."""


def _lineage(base: str) -> frozenset[str]:
    found, grown = {f"<{XSD}{base}>"}, True
    while grown:
        below = {b for b, a in DATATYPE_PARENTS.items() if a in found} - found
        found |= below
        grown = bool(below)
    return frozenset(found)


_INTEGERS = _lineage("integer")
_REALS = frozenset({DECIMAL, DOUBLE, f"<{XSD}float>"})
_TEXTS = _lineage("string") | {LANG_STRING}
_INSTANTS = _lineage("dateTime") | {f"<{XSD}date>"}

_INTEGER_FORM = re.compile(r"[+-]?[0-9]+")
_DECIMAL_FORM = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE_FORM = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_INSTANT_FORM = re.compile(
    r"(-?[0-9]{4,})-([0-9]{2})-([0-9]{2})(?:T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_DIGITS = 4000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=65_536)
def value_of(literal: Literal) -> Value | None:
    """The value, or None for a datatype whose values we do not know; IllTyped if the text does not fit its datatype."""
    lexical, datatype, _ = literal
    if datatype in _TEXTS:
        return lexical
    if datatype in _INTEGERS or datatype in _REALS or datatype in _INSTANTS or datatype == BOOLEAN:
        try:
            return _read(lexical.strip(" \t\n\r"), datatype)
        except (ValueError, KeyError, OverflowError):
            raise IllTyped(f"{lexical[:80]!r} is no {datatype.strip('<>').rpartition('#')[2]}") from None
    return None


def _read(text: str, datatype: str) -> Value:
    if datatype in _INTEGERS:
        if not _INTEGER_FORM.fullmatch(text) or len(text) > _DIGITS:
            raise ValueError
        return int(text)
    if datatype in _REALS:
        form = _DECIMAL_FORM if datatype == DECIMAL else _DOUBLE_FORM
        if not form.fullmatch(text) or len(text) > _DIGITS:
            raise ValueError
        whole, _, fraction = text.partition(".")
        if datatype == DECIMAL and not fraction.strip("0"):
            return int(whole or "0") if whole not in ("+", "-") else 0
        return float(text)
    if datatype == BOOLEAN:
        return _TRUTHS[text]
    return instant_of(text, dated=datatype == f"<{XSD}date>")


def instant_of(text: str, *, dated: bool = False) -> Instant:
    """Microseconds of an xsd:dateTime (or an xsd:date, its midnight). Without a zone it is UTC."""
    parts = _INSTANT_FORM.fullmatch(text)
    if parts is None or (parts[4] is None) != dated:
        raise ValueError
    year, month, day = int(parts[1]), int(parts[2]), int(parts[3])
    hour, minute, second = (int(parts[i] or 0) for i in (4, 5, 6))
    shift = timedelta(0)
    if hour == 24 and not minute and not second:
        hour, shift = 0, timedelta(days=1)
    zone = parts[8]
    if zone and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        if hours > 14 or minutes > 59:
            raise ValueError
        shift -= timedelta(hours=hours, minutes=minutes) * (1 if zone[0] == "+" else -1)
    moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _EPOCH + shift
    return Instant(moment // timedelta(microseconds=1) + int((parts[7] or "")[:6].ljust(6, "0")))


def literal_of(value: object) -> Literal:
    """The literal of a Python value: a boolean, a number, a text."""
    if isinstance(value, bool):
        return Literal("true" if value else "false", BOOLEAN)
    if isinstance(value, int):
        return Literal(str(value), INTEGER)
    if isinstance(value, float):
        lexical = (
            "NaN" if math.isnan(value) else repr(value).replace("inf", "INF") if math.isinf(value) else repr(value)
        )
        return Literal(lexical, DOUBLE)
    return Literal(str(value), STRING)


def python_of(term: Term) -> Any:
    """What a binding holds: numbers, booleans, instants and text as values, everything else as text."""
    if isinstance(term, str):
        return term
    value = value_of(term)
    return term.lexical if value is None else value


def order_of(term: Term) -> tuple[int, Any]:
    """The order of bindings: booleans, then numbers (NaN last), then text by code points, then instants."""
    value = python_of(term)
    if isinstance(value, bool):
        return 0, value
    if isinstance(value, str):
        return 3, value
    if isinstance(value, Instant):
        return 4, int(value)
    return (2, 0.0) if value != value else (1, value)
