"""Why a sequence matched some events, or how far it came: its automaton, and the story of its runs.

The events are replayed from an empty state, with the subscriptions that PUBLISH what this one reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.columns import Columns
from headgate.explain.explanation import Explanation
from headgate.schema import Schema
from headgate.sequences.engine import Index
from headgate.sequences.explain import draw, tell
from headgate.sequences.publish_levels import publishers
from headgate.sequences.spine import reads
from headgate.sequences.static import Static

MOST_STEPS = 200


def explain_sequence(
    name: str,
    text: str,
    index: Index,
    parts: Sequence[Columns] | None,
    static: Static,
    streams: Mapping[str, Schema],
) -> Explanation:
    """Without events, only the automaton."""
    drawing = draw(index, name)
    automaton = ["its automaton:", *drawing.text().splitlines()[1:]]
    pictures = (drawing.picture(f"automaton of {name}"),)
    if parts is None:
        return Explanation(name, text, None, story=tuple(automaton), pictures=pictures)
    subscription = next(s for s in index.subscriptions if s.name == name)
    story = tell(
        subscription, [parts], beside=publishers(subscription, index.subscriptions), static=static, streams=streams
    )
    steps = [str(s) for s in story.steps]
    if len(steps) > MOST_STEPS:
        steps = [f"... {len(steps) - MOST_STEPS} steps before", *steps[-MOST_STEPS:]]
    happened = ["what happened to its runs:", *(f"  {s}" for s in steps)] if steps else ["no event began a run"]
    counts = f"{story.matches} match(es), {story.alive} run(s) still waiting"
    blocking = () if story.matches else (_blocking(story.alive, story.furthest, bool(steps)),)
    return Explanation(name, text, story.matches > 0, (), blocking, "", (*automaton, *happened, counts), pictures)


def _blocking(alive: int, furthest: str, begun: bool) -> str:
    if not begun:
        return "no event began a run"
    return f"no event came for the run that waits at {furthest}" if alive else f"no run got past {furthest}"


def streams_of(name: str, index: Index) -> list[str]:
    """The streams whose events a sequence is made of, directly or through what others PUBLISH."""
    subscription = next(s for s in index.subscriptions if s.name == name)
    chain = [subscription, *publishers(subscription, index.subscriptions)]
    published = {s.spine.publish for s in index.subscriptions}
    return sorted({stream for s in chain for stream in reads(s.spine) if stream not in published})
