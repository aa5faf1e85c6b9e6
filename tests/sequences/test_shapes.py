"""What is compiled as a skeleton with constants, or laid over an index, is what its text says."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.sequences.book import STATIC, Found, by_reference, catalogue_of, columns_of, events_of, spines_of, take
from tests.sequences.patterns import SCHEMAS, S, T, books, events

from headgate.language.catalogue import Catalogue
from headgate.sequences.engine import Index
from headgate.sequences.publish_levels import Subscription
from headgate.sequences.runs.signatures import signature
from headgate.sequences.shapes import Shapes
from headgate.sequences.spine import Spine

_modes = st.sampled_from(["null", "strict", "default", "total"])


def by_shape(texts: dict[str, str], missing: str) -> dict[str, Spine]:
    catalogue = catalogue_of(*SCHEMAS)
    made = {}
    for name, text in texts.items():
        made[name] = Shapes(catalogue, missing).spine(text)
        published = made[name].publish
        if published is not None:
            catalogue.streams[published] = made[name].schema
    return made


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=books(), s=events(), t=events(), missing=_modes, laid_over=st.integers(0, 3))
def test_skeletons_and_indexes_in_layers_give_what_the_definitions_give(
    texts: dict[str, str], s: Any, t: Any, missing: str, laid_over: int
) -> None:
    for name, text in texts.items():
        note(f"{name}: {text}")
    subscriptions = [Subscription(name, spine, missing) for name, spine in by_shape(texts, missing).items()]
    index = Index(subscriptions[:laid_over], STATIC, streams={schema.stream: schema for schema in SCHEMAS})
    for more in subscriptions[laid_over:]:
        index = index.extended([more], (), STATIC)
    found: Found = {name: [] for name in texts}
    take(found, index.session().feed([columns_of(S, s), columns_of(T, t)]))
    expected = by_reference(spines_of(texts, *SCHEMAS), {"S": events_of(S, s), "T": events_of(T, t)}, missing)
    assert {name: sorted(rows) for name, rows in found.items()} == expected


def test_texts_that_differ_in_constants_share_a_skeleton_and_keep_their_signatures() -> None:
    text = "SELECT e2.a AS a FROM FILTER {a = 1} (S) NEXT {$2.k = $1.k AND x > 2.5} T"
    shapes = Shapes(Catalogue(streams={s.stream: s for s in SCHEMAS}))
    one, other = shapes.spine(text), shapes.spine(text.replace("2.5", "3.5"))
    assert one.steps[0].theta.skeleton is other.steps[0].theta.skeleton  # type: ignore[attr-defined]  # it is filled
    assert one.steps[0].theta != other.steps[0].theta
    plain = spines_of({"s": text}, *SCHEMAS)["s"]
    signatures = []
    for spine in (one, plain, other):
        level = Index([Subscription("s", spine)], STATIC).levels[0]
        signatures.append(signature(level.compiled.states[0], level.streams))
    assert signatures[0] == signatures[1] != signatures[2]
