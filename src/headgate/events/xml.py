"""XML-style messages, as in the paper on boolean filters: an element is an attribute, its text the value.

    <message> <company> IBM </company> <price> 5000 </price> </message>

Nested elements are paths and repeated elements an ARRAY. The outer element may be left out, as the paper does; XML
attributes and namespaces are ignored. Whitespace around a text does not count. `<price/>` is missing, but for a STRING
it is the empty text. Entities and document types are refused, so that no message can blow up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, ParseError

import pyarrow as pa
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from headgate.columns import Column
from headgate.errors import UsageError
from headgate.events.any_values import of_objects
from headgate.events.decoder import assemble
from headgate.events.outcome import DEFAULT_LIMITS, Decoded, Limits, Misfit, Needs, shown_text, too_large
from headgate.events.sources import Bytes, name_of, opened
from headgate.events.texts import fit_text, text_column, written
from headgate.events.vectors import by_value
from headgate.schema import Attribute, Path, Schema, Type, format_path

if TYPE_CHECKING:
    from headgate.columns import Mask


def from_xml(
    messages: Iterable[bytes | str],
    schema: Schema,
    needs: Needs = None,
    *,
    first: int = 0,
    limits: Limits = DEFAULT_LIMITS,
) -> Decoded:
    """One event for each message."""
    texts = list(messages)
    events: list[Element] = []
    rejected: dict[int, Misfit] = {}
    for row, text in enumerate(texts):
        try:
            if len(text) > limits.event_bytes:
                raise too_large(len(text), limits)
            events.append(parse_message(text))
        except Misfit as problem:
            events.append(Element("message"))
            rejected[row] = problem
    return assemble(_Messages(events, texts, limits), schema, needs, first, rejected)


def read_xml(
    source: Bytes, schema: Schema, needs: Needs = None, *, first: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Decoded]:
    """A file with one message, with several one after the other, or with several inside one outer element."""
    needs = None if needs is None else list(needs)
    with opened(source) as file:
        text = file.read(limits.document_bytes + 1)
    if len(text) > limits.document_bytes:
        raise UsageError(
            f"{name_of(source)} is larger than {limits.document_bytes:,} bytes (document_bytes)",
            "XML is read as a whole: split the file, or raise the limit",
        )
    messages = iter(split_messages(text.encode() if isinstance(text, str) else text))
    while part := list(islice(messages, limits.batch_rows)):
        yield from_xml(part, schema, needs, first=first, limits=limits)
        first += len(part)


_MESSAGE = (b"message", b"event")
_COMMENTS = rb"(?>(?:<\?.*?\?>|<!--.*?-->)\s*+)*+"
"""Atomic and possessive, as all repeats here: no message makes these patterns try a text in more than one way."""
_OPENING = re.compile(rb"\s*+" + _COMMENTS + rb"<([A-Za-z_:][^\s/>]*+)([^>]*+)>", re.DOTALL)
_CHILD = re.compile(rb"[^<]*+(?>(?:<!--.*?-->)[^<]*+)*+<[A-Za-z_:]", re.DOTALL)


def split_messages(text: bytes) -> list[bytes]:
    """The messages of a file, by their text: a broken or hostile one then spoils only itself.

    The first element's name ends each message. If there is one such element, it is an outer element when all that is
    inside it are elements of one name that hold elements: several of them, or one called message or event. But an
    element called message or event is always a message.
    """
    if not text.strip():
        return []
    outer = _OPENING.match(text)
    if outer is None or outer[2].endswith(b"/"):
        return [text]
    pieces = _pieces(text[outer.start() :], outer[1])
    if len(pieces) > 1:
        return pieces if _holds_elements(pieces[0]) else [text]
    end = text.rfind(b"</" + outer[1])
    body = text[outer.end() : end if end >= 0 else len(text)]
    inner = _OPENING.match(body)
    if outer[1] in _MESSAGE or inner is None or inner[2].endswith(b"/") or not _holds_elements(body):
        return [text]
    pieces = _pieces(body, inner[1])
    names = {opening[1] if (opening := _OPENING.match(piece)) else None for piece in pieces}
    return pieces if names == {inner[1]} and (len(pieces) > 1 or inner[1] in _MESSAGE) else [text]


def _pieces(text: bytes, name: bytes) -> list[bytes]:
    closing = re.compile(rb"</" + re.escape(name) + rb"\s*>")
    pieces, start = [], 0
    for end in closing.finditer(text):
        pieces.append(text[start : end.end()])
        start = end.end()
    rest = text[start:]
    return pieces if not rest.strip() else [*pieces, rest]


def _holds_elements(text: bytes) -> bool:
    """Whether the first element of a text has an element inside it."""
    opening = _OPENING.match(text)
    return opening is not None and _CHILD.match(text, opening.end()) is not None


def parse_message(text: bytes | str) -> Element:
    """The element whose children are the attributes."""
    try:
        root = _parse(text)
        return root if len(root) else _around([root])
    except ParseError as problem:
        bare = text if isinstance(text, str) else text.decode("utf-8", "replace")
        try:
            message = _parse(f"<message>{bare}</message>")
        except ParseError:
            message = Element("message")
        if not len(message):
            raise Misfit(f"not XML: {problem}", "xml") from None
        return message


def _around(children: list[Element]) -> Element:
    """A message of one bare element; an empty `<message/>` has no attributes."""
    message = Element("message")
    if (children[0].text or "").strip() or children[0].tag not in ("message", "event"):
        message.extend(children)
    return message


def _parse(text: bytes | str) -> Element:
    try:
        root: Element = fromstring(text, forbid_dtd=True)
    except DefusedXmlException as problem:
        raise Misfit(f"XML with a document type or entities is refused: {type(problem).__name__}", "xml") from None
    except (ValueError, LookupError) as problem:  # an encoding that Python does not know
        raise Misfit(f"not XML: {problem}", "xml") from None
    return root


class _Messages:
    """A batch of messages as elements."""

    def __init__(self, events: list[Element], texts: list[Any], limits: Limits) -> None:
        self.rows = len(events)
        self._events = events
        self._texts = texts
        self._limits = limits

    def text(self, row: int) -> str:
        return shown_text(self._texts[row])

    def column(self, attribute: Attribute) -> tuple[Column, Mask | None]:
        found = [self._find(event, attribute.path) for event in self._events]
        kind = attribute.type
        if kind is None:
            return of_objects([_own(f) for f in found]), None
        if not kind.array and all(f is None or isinstance(f, str) for f in found):
            return text_column(pa.array(found, pa.string()), kind, self._limits)
        return by_value(found, kind, lambda value: self._fit(value, kind))

    def misfit(self, row: int, attribute: Attribute) -> Misfit:
        try:
            assert attribute.type is not None
            self._fit(self._find(self._events[row], attribute.path), attribute.type)
        except Misfit as problem:
            return problem
        return Misfit(f"the element is not a {attribute.type}")

    def typed(self, attribute: Attribute) -> bool:
        return False

    def _fit(self, value: Any, kind: Type) -> Any:
        if isinstance(value, Misfit):
            raise value
        if kind.array and value is not None and not isinstance(value, list):
            value = [value]
        return fit_text(value, kind, self._limits)

    def _find(self, event: Element, path: Path) -> Any:
        """None, a text, a list of texts, or the Misfit that stands in the way."""
        at = [event]
        for depth, name in enumerate(path):
            if depth:
                plain = [e for e in at if not len(e) and (e.text or "").strip()]
                if plain:
                    above, rest = format_path(path[:depth]), format_path(path[depth:])
                    return Misfit(f"{above} is text, not an object, so it has no {rest}")
            at = [child for element in at for child in element if _name(child) == name]
        values = [object() if len(e) else (e.text or "").strip() for e in at]
        return None if not values else values[0] if len(values) == 1 else values


def _own(found: Any) -> Any:
    """What an attribute of the type ANY is: a value or several; an element that holds others is an object."""
    if isinstance(found, list):
        return [_own(f) for f in found]
    return None if found is None or isinstance(found, Misfit) else written(found) if isinstance(found, str) else {}


def _name(element: Element) -> str:
    tag: object = element.tag  # a comment has a function for a tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
