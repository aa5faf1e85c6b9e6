"""Pictures as text. The diagram is walked for every assignment: it must say what the body says."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.explain import pictures
from headgate.explain.filters import value_of
from headgate.explain.pictures import decision_diagram
from headgate.language import ast
from headgate.language.parser import parse_body
from headgate.pictures import Picture

ATOMS = [ast.Attribute((name,)) for name in "abc"]
BODIES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        inner.map(ast.Not),
        st.lists(inner, min_size=2, max_size=3).map(lambda items: ast.And(tuple(items))),
        st.lists(inner, min_size=2, max_size=3).map(lambda items: ast.Or(tuple(items))),
    ),
    max_leaves=8,
)


def walk(picture: Picture, values: dict[str, bool | None]) -> str:
    """Follow a diagram in DOT from its root to its end."""
    labels = dict(re.findall(r'^  (n\d+) \[label="(.*?)",', picture.graphviz, re.MULTILINE))
    edges = re.findall(r'^  (n\d+) -> (n\d+) \[label="(.*?)"', picture.graphviz, re.MULTILINE)
    below = {target for _, target, _ in edges}
    (at,) = [n for n in labels if n not in below]
    word = {True: "true", False: "false", None: "unknown"}
    while out := {label: target for source, target, label in edges if source == at}:
        said = word[values[labels[at]]]
        at = next(t for label, t in out.items() if said in label.split(" or ") or (label == "else" and said != "true"))
    return str(labels[at])


@given(BODIES)
def test_a_diagram_decides_as_the_body_does(body: Any) -> None:
    picture = decision_diagram("d", body)
    for truths in product((True, False, None), repeat=3):
        values = dict(zip("abc", truths, strict=True))
        expected = value_of(body, dict(zip(ATOMS, truths, strict=True))) is True
        assert walk(picture, values) == ("match" if expected else "no match")


def test_a_question_that_makes_no_difference_is_left_out() -> None:
    picture = decision_diagram("d", parse_body("x AND y OR x AND NOT y OR x AND y IS NULL OR x"))
    assert '"x"' in picture.graphviz
    assert '"y"' not in picture.graphviz


def test_two_valued_logic_has_no_edge_for_unknown() -> None:
    assert "else" not in decision_diagram("d", parse_body("x < 5 AND y"), two_valued=True).graphviz


def test_a_formula_too_large_for_a_diagram_is_drawn_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_NODES", 3)
    picture = decision_diagram("d", parse_body("(a OR b) AND NOT (c AND d)"))
    assert '[label="AND", shape=circle]' in picture.graphviz
    assert '[label="d is false", shape=box]' in picture.graphviz


def test_quotes_and_brackets_are_escaped_for_both_languages() -> None:
    picture = decision_diagram('the "d"', parse_body("""t = 'say "hi"\\' AND x < 5"""))
    assert picture.graphviz.startswith('digraph "the \\"d\\"" {')
    assert '[label="t = \'say \\"hi\\"\\\\\'", shape=box]' in picture.graphviz
    assert '"x #lt; 5"' in picture.mermaid
    assert "say #quot;hi#quot;" in picture.mermaid


def test_a_tautology_is_its_end_alone() -> None:
    assert decision_diagram("d", parse_body("TRUE")).mermaid == 'flowchart TD\n  n0(["match"])'
