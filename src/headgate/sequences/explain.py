"""Why a sequence did what it did: its automaton as text or picture, its runs, and the fate of each.

An explanation replays events with the stepper and writes down what happens to every run, so it costs nothing where
nobody asks. Predicates are shown in the words of the language, each event under its alias.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headgate.columns import Columns
from headgate.language import ast
from headgate.language.ast import DUR, TRUE, Node, rewrite
from headgate.language.printer import print_node
from headgate.pictures import Picture
from headgate.schema import Schema
from headgate.sequences.automaton import Automaton, Options, State, Target, path_of
from headgate.sequences.engine import Index, Session
from headgate.sequences.level_index import LevelIndex
from headgate.sequences.parameterized import plain
from headgate.sequences.publish_levels import Subscription
from headgate.sequences.runs.table import RunTable
from headgate.sequences.static import Static
from headgate.sequences.stepper import Run


@dataclass(frozen=True)
class Transition:
    """An arrow of the drawing: 'forward', 'filter' or 'rebind'."""

    source: str
    target: str
    kind: str
    label: str


@dataclass(frozen=True)
class Drawing:
    """The automaton of one subscription."""

    name: str
    nodes: tuple[str, ...]
    transitions: tuple[Transition, ...]

    def text(self) -> str:
        width = max((len(t.source) + len(t.target) for t in self.transitions), default=0)
        lines = [f"  {f'{t.source} -> {t.target}':<{width + 4}}  {t.kind:<7}  {t.label}" for t in self.transitions]
        return "\n".join([f"{self.name}: {' -> '.join(self.nodes)}", *lines])

    def picture(self, title: str) -> Picture:
        drawn = Picture(title, sideways=True)
        nodes = {n: drawn.node(n, "doublecircle" if n == "accept" else "circle") for n in self.nodes}
        style = {"forward": "solid", "filter": "dashed", "rebind": "dotted"}
        for t in self.transitions:
            drawn.arrow(nodes[t.source], nodes[t.target], f"{t.kind}: {t.label}", style[t.kind])
        return drawn


def draw(index: Index, subscription: str) -> Drawing:
    """The automaton of a subscription, with its forward, filter and rebind edges."""
    level, target, _ = _find(index, subscription)
    states = list(path_of(target))
    aliases = [source.alias or f"e{i + 1}" for i, source in enumerate(target.sources)]
    names = [f"{i} {s.step.kind} {aliases[i]}" for i, s in enumerate(states, start=1)]
    nodes = ["start", *names, "accept"]
    first = states[0].origin if states else target

    def shown(node: Node) -> str:
        return _shown(node, aliases)

    entry = f"{level.streams[first.streams[0]]}: {shown(first.after)}"
    transitions = [Transition("start", nodes[1], "forward", entry)]
    for i, state in enumerate(states):
        here, theta, keep = nodes[i + 1], shown(state.step.theta), shown(state.step.keep)
        transitions.append(Transition(here, here, "filter", f"NOT ({theta})"))
        if state.step.kind == "FOLD":
            transitions.append(Transition(here, here, "rebind", _both(theta, keep)))
        after = shown(states[i + 1].origin.after if i + 1 < len(states) else target.after)
        label = _both(theta, keep, after)
        if state.step.kind == "ABSENT":
            label = _both(f"no {level.streams[state.stream]} with {theta} within {state.step.within} ticks", after)
        transitions.append(Transition(here, nodes[i + 2], "forward", label))
    return Drawing(subscription, tuple(nodes), tuple(transitions))


def _both(*parts: str) -> str:
    kept = [p for p in parts if p != "TRUE"]
    return " AND ".join(kept) if kept else "TRUE"


def _shown(node: Node, aliases: list[str]) -> str:
    """A predicate in the words of the language."""

    def change(n: Node) -> Node | None:
        if isinstance(n, ast.Variable):
            return ast.Variable(n.name.partition(".")[0])
        if not isinstance(n, ast.Attribute):
            return None
        head, rest = n.path[0], n.path[1:]
        if n.path[-1] == DUR:
            return ast.Duration()
        if head == "$" or head == "@":
            return ast.Attribute(rest, "$")
        return ast.Attribute(rest if head[0] == "@" else (aliases[int(head[1:])], *rest))

    node = plain(node)
    return "TRUE" if node == TRUE else print_node(rewrite(node, change))


def _find(index: Index, subscription: str) -> tuple[LevelIndex, Target, Automaton]:
    number = next(i for i, s in enumerate(index.subscriptions) if s.name == subscription)
    for level in index.levels:
        producer = level.producer_of.get(number)
        if producer is not None:
            automaton = level.interpreted if producer in level.slow else level.compiled
            return level, next(t for t in automaton.targets if producer in t.accepts), automaton
    raise AssertionError(subscription)


def runs_alive(session: Session) -> dict[str, int]:
    """How many runs wait in the states of each subscription. A state that several share counts for each."""
    found: dict[str, int] = {}
    for at, level in enumerate(session.index.levels):
        table = session.tables[at]
        counts = {id(s): int(c) for s, c in zip(level.compiled.states, table.waiting(), strict=True)}
        counts |= {id(s): len(table.stepper.runs[s.number]) for s in level.interpreted.states}
        for automaton in (level.compiled, level.interpreted):
            for target in automaton.targets:
                total = sum(counts.get(id(s), 0) for s in path_of(target))
                for producer in target.accepts:
                    for number in level.producers[producer].subscriptions:
                        found[session.index.subscriptions[number].name] = total
    return found


def dropped(session: Session) -> dict[str, int]:
    """Runs that the quota has cost, by subscription."""
    found: dict[str, int] = {}
    for at, level in enumerate(session.index.levels):
        table = session.tables[at]
        lost = {id(s): int(c) for s, c in zip(level.compiled.states, table.lost(), strict=True) if c}
        lost |= {id(level.interpreted.states[n]): c for n, c in table.stepper.dropped.items()}
        for automaton in (level.compiled, level.interpreted) if lost else ():
            for target in automaton.targets:
                total = sum(lost.get(id(s), 0) for s in path_of(target))
                for producer in target.accepts if total else ():
                    for number in level.producers[producer].subscriptions:
                        found[session.index.subscriptions[number].name] = total
    return found


@dataclass(frozen=True)
class Step:
    """One line of a story: what happened to a run at a state. `event` is the row of the event, -1 for none."""

    what: str
    state: str
    t0: int
    t1: int
    event: int

    def __str__(self) -> str:
        by = f" by event {self.event}" if self.event >= 0 else ""
        return f"run [{self.t0}, {self.t1}] at {self.state}: {self.what}{by}"


@dataclass
class Story:
    """What happened to the runs of a subscription, in order, how many matches there were, and how many runs wait."""

    steps: list[Step] = field(default_factory=list)
    matches: int = 0
    alive: int = 0
    furthest: str = ""
    """The last state that a run reached."""

    def __str__(self) -> str:
        return "\n".join([*map(str, self.steps), f"{self.matches} matches"])


def tell(
    subscription: Subscription,
    batches: Iterable[Columns | Sequence[Columns]],
    *,
    beside: Sequence[Subscription] = (),
    static: Static,
    streams: Mapping[str, Schema] | None = None,
) -> Story:
    """Replays events for one subscription and says why each of its runs moved on, died or waits.

    A batch is of one stream, or of several. `beside` are the subscriptions that PUBLISH what it reads.
    """
    index = Index([subscription, *beside], static, Options(kernel=False), streams)
    session = index.session()
    story = Story()
    level, target, _ = _find(index, subscription.name)
    own = [id(state) for state in path_of(target)]
    at = index.levels.index(level)
    reached = -1

    def watch(what: str, state: State, run: Run, event: int) -> None:
        nonlocal reached
        if id(state) in own:
            _write_down(story, session.tables[at], level, what, state, run, event)
            if own.index(id(state)) > reached:
                reached, story.furthest = own.index(id(state)), story.steps[-1].state

    session.tables[at].stepper.watch = watch
    for batch in batches:
        found = session.feed([batch] if isinstance(batch, Columns) else batch)
        story.matches += sum(found.name(i) == subscription.name for i in range(len(found)))
    story.alive = runs_alive(session).get(subscription.name, 0)
    return story


def _write_down(
    story: Story, table: RunTable, level: LevelIndex, what: str, state: State, run: Run, event: int
) -> None:
    row = int(table.memory.row[event]) if event >= 0 else -1
    name = f"{state.step.kind} {state.step.source.alias or level.streams[state.stream]}"
    story.steps.append(Step(what, name, run.t0, run.t1, row))
