"""Printing: what is printed reads back as the same tree, and is what a person would have written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.parser import parse_body, parse_script
from headgate.language.printer import print_name, print_node, print_script
from tests.language import strategies


@settings(max_examples=400, deadline=None)
@given(strategies.expressions())
def test_an_expression_reads_back_as_it_was(body: Node) -> None:
    assert parse_body(print_node(body)) == body


@settings(max_examples=200, deadline=None)
@given(strategies.graph_patterns())
def test_a_graph_pattern_reads_back_as_it_was(body: Node) -> None:
    assert parse_body(print_node(body)) == body


@settings(max_examples=200, deadline=None)
@given(strategies.patterns())
def test_a_sequence_reads_back_as_it_was(body: Node) -> None:
    assert parse_body(print_node(body)) == body


@settings(max_examples=200, deadline=None)
@given(strategies.statements())
def test_a_statement_reads_back_as_it_was(statement: Any) -> None:
    assert parse_script(print_script([statement])) == [statement]
