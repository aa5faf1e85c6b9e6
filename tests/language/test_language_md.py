"""LANGUAGE.md does what it says: every block of it is run.

`headgate` blocks are accepted, `headgate-error` blocks are refused with the message shown, `truth` blocks have rows
`body | event | missing-mode | truth` on the stream `stock`. The blocks see what earlier blocks have declared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from headgate import Subscriptions, operator
from headgate.errors import LanguageError, LanguageErrors
from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.catalogue import Catalogue, Signature
from headgate.language.parser import parse_body, parse_script, parse_tokens
from headgate.language.printer import print_node
from headgate.language.tokens import RESERVED, SOFT, statements
from headgate.oracle.filters import truth
from headgate.predicates.check import check_filter
from headgate.predicates.times import instant
from headgate.schema import Instant, Kind, Schema, format_path

PAGE = (Path(__file__).parents[2] / "LANGUAGE.md").read_text("utf-8")
OPERATORS = {name: Signature(name, 1, 2) for name in ("loc_in", "mob_pattern", "near")}
TRUTHS = {"TRUE": True, "FALSE": False, "UNKNOWN": None}


def blocks(kind: str) -> Iterator[str]:
    return (found[1] for found in re.finditer(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def schema_of(stream: ast.CreateStream) -> Schema:
    constants = {format_path(c.path): c.default for c in stream.columns}
    return Schema.of(
        stream.name,
        {format_path(c.path): c.type for c in stream.columns},
        [format_path(path) for path in stream.time],
        not_null=[format_path(c.path) for c in stream.columns if c.not_null],
        defaults={name: node.value for name, node in constants.items() if isinstance(node, ast.Literal)},
    )


@cache
def catalogue() -> Catalogue:
    """Everything that the page declares."""
    made = Catalogue(operators=OPERATORS)
    for block in blocks("headgate"):
        for tokens in statements(block):
            match parse_tokens(tokens):
                case ast.CreateStream() as stream:
                    made.streams[stream.name] = schema_of(stream)
                case ast.Prefix(name, iri):
                    made.prefixes[name] = iri
    return made


def problems(body: Node, stream: str = "stock") -> list[LanguageError]:
    return check_filter(body, catalogue().streams[stream], catalogue())


@pytest.mark.parametrize("block", list(blocks("headgate")))
def test_a_script_of_the_page_is_accepted(block: str) -> None:
    for tokens in statements(block):
        match parse_tokens(tokens):
            case ast.CreateSubscription(body=body, stream=str(stream)):
                assert problems(body, stream) == []
            case ast.CreateSubscription(body=body, stream=None):
                assert isinstance(body, ast.Pattern)
            case ast.CreateStream() | ast.Prefix() | ast.CreateOntology() | ast.Drop():
                pass
            case body:
                assert problems(body) == []


@pytest.mark.parametrize("block", list(blocks("headgate")))
def test_a_script_of_the_page_reads_back_as_it_was(block: str) -> None:
    for tokens in statements(block):
        node = parse_tokens(tokens)
        text = print_node(node)
        assert (parse_script(text) if isinstance(node, ast.Statement) else [parse_body(text)]) == [node]


def mistakes() -> Iterator[tuple[str, str]]:
    for block in blocks("headgate-error"):
        text = ""
        for line in block.splitlines():
            if line.startswith("-- error: "):
                yield text.strip(), line.removeprefix("-- error: ")
                text = ""
            else:
                text += line + "\n"


def book() -> Subscriptions:
    """A book with the streams and prefixes of the page."""

    def found(event: object, *arguments: object) -> bool:
        return True

    made = Subscriptions([operator(name=name)(found) for name in OPERATORS])
    for block in blocks("headgate"):
        for tokens in statements(block):
            node = parse_tokens(tokens)
            if isinstance(node, ast.CreateStream | ast.Prefix):
                made.extend(print_node(node))
    return made


@pytest.mark.parametrize(("text", "message"), list(mistakes()))
def test_a_mistake_on_the_page_is_refused_as_it_says(text: str, message: str) -> None:
    with pytest.raises((LanguageError, LanguageErrors)) as caught:
        book().check(text, on="offers" if "GRAPH" in text else "stock")
    assert message in str(caught.value)


def rows() -> Iterator[tuple[str, str, str, str]]:
    for block in blocks("truth"):
        for line in block.splitlines():
            body, event, mode, value = (cell.strip() for cell in line.split(" | "))
            yield body, event, mode, value


def row_of(event: dict[str, Any], schema: Schema) -> dict[ast.Path, Any]:
    row: dict[ast.Path, Any] = {}
    for attribute in schema:
        value: Any = event
        for part in attribute.path:
            value = value.get(part) if isinstance(value, dict) else None
        is_time = attribute.type is not None and attribute.type.kind is Kind.TIMESTAMP
        row[attribute.path] = Instant(instant(value)) if is_time and value is not None else value
    return row


@pytest.mark.parametrize(("text", "event", "mode", "value"), list(rows()))
def test_a_predicate_on_the_page_has_the_truth_it_says(text: str, event: str, mode: str, value: str) -> None:
    schema = catalogue().streams["stock"]
    body = parse_body(text)
    assert problems(body) == []
    assert truth(body, row_of(json.loads(event), schema), schema, mode) is TRUTHS[value]


def test_the_page_draws_an_error_as_it_is() -> None:
    drawn = re.search(r"^    line 2.*?hint: .*?$", PAGE, re.MULTILINE | re.DOTALL)
    assert drawn is not None
    (tokens,) = statements("-- a line\nCREATE SUBSCRIPTION cheap ON stock AS prize < 100;")
    subscription = parse_tokens(tokens)
    assert isinstance(subscription, ast.CreateSubscription)
    (problem,) = problems(subscription.body)
    assert str(tokens.error(problem)) == dedent(drawn[0])


def test_the_page_has_examples_of_every_kind() -> None:
    assert len(list(blocks("headgate"))) >= 10
    assert len(list(mistakes())) >= 20
    assert len(list(rows())) >= 50
    assert {mode for _, _, mode, _ in rows()} == {"null", "strict", "default", "total"}


def test_the_page_lists_the_words_of_the_language() -> None:
    words = PAGE.partition("## 10. Words")[2]
    listed = [
        tuple(re.findall(r"\b[A-Z]{2,}\b", part))
        for part in re.findall(r"(?:backticks|names\*\*): (.*?)\.", words, re.S)
    ]
    assert listed == [RESERVED, SOFT]
