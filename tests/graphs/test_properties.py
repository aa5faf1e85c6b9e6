"""The engine equals brute force: random ontologies, events and patterns, ISO and HOM.

300 cases in every run, 5,000 at night; a case has two events and five patterns, so ten questions.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.graphs.cases import PREFIXES, Case, cases, make
from tests.graphs.meaning import Answer, ontology_of

from headgate.errors import LanguageError
from headgate.graphs import kernels
from headgate.graphs.event import LIMITS, EventGraph
from headgate.graphs.index import build
from headgate.graphs.join import kernels as join
from headgate.graphs.matching import Bindings, Matcher
from headgate.graphs.pattern import Named, Prefixes, compile_pattern
from headgate.language import ast
from headgate.oracle import graph_kernels
from headgate.oracle import graphs as oracle

PLAIN = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))


def compiled(case: Case) -> tuple[list[ast.Graph], list[Named]]:
    """The patterns of a case that can be reached from home; the generator makes some that cannot."""
    graphs, named = [], []
    for graph in case.graphs:
        try:
            named.append(compile_pattern(graph, Prefixes(PREFIXES)))
        except LanguageError:
            continue
        graphs.append(graph)
    return graphs, named


def answers(case: Case, named: list[Named], every: bool, **how: int) -> dict[tuple[int, int], Answer]:
    index = build(named, ontology_of(case.meaning), range(len(named)) if every else ())
    matcher = Matcher(index, LIMITS, **how)
    events = [EventGraph.of(e) for e in case.events]
    found = matcher.match(events)
    bindings = Bindings(matcher.index, [e.terms for e in events], found)
    made: dict[tuple[int, int], Answer] = {}
    for event, slot, binding in zip(found.event.tolist(), found.slot.tolist(), bindings, strict=True):
        made.setdefault((event, slot), []).append(binding)
    return made


def engine_equals_oracle(case: Case) -> None:
    graphs, named = compiled(case)
    least, every = answers(case, named, every=False), answers(case, named, every=True)
    for e, event in enumerate(case.events):
        for slot, graph in enumerate(graphs):
            wanted = oracle.bindings(graph, event, case.meaning)
            assert every.get((e, slot), []) == wanted, case.texts
            assert least.get((e, slot), []) == wanted[:1], case.texts


def kernels_equal_their_twins(case: Case) -> None:
    _, named = compiled(case)
    index = build(named, ontology_of(case.meaning))
    if not index.patterns:
        return
    matcher = Matcher(index)
    events = [EventGraph.of(e) for e in case.events]
    batch = index.dictionary.encode(events)
    table, present = matcher.rows(batch)
    row_of, keys = table.at, table.keys
    rows = []
    for e, event in enumerate(events):
        n = len(event.terms)
        own = keys[row_of[e] : row_of[e + 1]].tolist()
        rows.append({(k // (n * n), k // n % n, k % n) for k in own})
        assert len(own) == len(rows[e])
        assert rows[e] == graph_kernels.statements(index, event)
    columns = index.columns
    nothing = np.empty((0, 0), np.uint64)
    event_of, pattern_of = kernels.candidates(present, columns.rare_at, columns.rare_m, nothing, len(events))
    pairs = set(zip(event_of.tolist(), pattern_of.tolist(), strict=True))
    assert pairs == graph_kernels.candidates(index, rows)
    for e, p in pairs:
        inside = slice(columns.vertices_at[p], columns.vertices_at[p + 1])
        arcs = slice(columns.arcs_at[p], columns.arcs_at[p + 1])
        found, _ = join.enumerate_all(
            row_of[e], row_of[e + 1], *table[1:], len(events[e].terms),
            batch.term[batch.vertex_at[e] : batch.vertex_at[e + 1]], columns.hom[p], columns.group[inside],
            columns.alike[inside], columns.arc_subject[arcs], columns.arc_object[arcs], columns.arc_m[arcs], 10_000,
            1_000_000, 2_000,
        )  # fmt: skip
        twin = graph_kernels.solutions(index.patterns[p], columns.arc_m[arcs].tolist(), events[e], rows[e])
        assert sorted(map(tuple, found.tolist())) == sorted(set(twin))


@given(cases())
@PLAIN
def test_the_engine_equals_brute_force(case: Case) -> None:
    engine_equals_oracle(case)


@pytest.mark.nightly
@given(cases())
@LONG
def test_the_engine_equals_brute_force_at_night(case: Case) -> None:
    engine_equals_oracle(case)


@given(cases())
@settings(PLAIN, max_examples=150)
def test_remembered_failures_change_no_answer(case: Case) -> None:
    _, named = compiled(case)
    for every in (False, True):
        assert answers(case, named, every, remember_after=0) == answers(case, named, every)


@given(cases())
@settings(PLAIN, max_examples=150)
def test_the_kernels_equal_their_plain_twins(case: Case) -> None:
    kernels_equal_their_twins(case)


@pytest.mark.nightly
@given(cases(size=8))
@settings(LONG, max_examples=2_000)
def test_the_kernels_equal_their_plain_twins_at_night(case: Case) -> None:
    kernels_equal_their_twins(case)


@given(cases())
@settings(PLAIN, max_examples=100)
def test_only_pairs_that_were_asked_for_are_answered(case: Case) -> None:
    _, named = compiled(case)
    if not named:
        return
    matcher = Matcher(build(named, ontology_of(case.meaning)))
    events = [EventGraph.of(e) for e in case.events]
    whole = matcher.match(events)
    pairs = [(e, s) for e in range(len(events)) for s in range(len(named)) if (e + s) % 2]
    asked = np.array([e for e, _ in pairs], np.int64), np.array([s for _, s in pairs], np.int32)
    part = matcher.match(events, asked)
    both = set(zip(whole.event.tolist(), whole.slot.tolist(), strict=True)) & set(pairs)
    assert sorted(both) == list(zip(part.event.tolist(), part.slot.tolist(), strict=True))


def test_a_case_matches_often_enough_to_prove_something() -> None:
    held = asked = 0
    for seed in range(60):
        case = make(Random(seed))
        graphs, _ = compiled(case)
        for event in case.events:
            for graph in graphs:
                asked += 1
                held += oracle.matches(graph, event, case.meaning)
    assert 0.2 < held / asked < 0.8
