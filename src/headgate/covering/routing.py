"""Routing in a network of brokers: who is told of which subscription, and where an event goes.

A broker tells a neighbour the subscriptions it has heard from everyone else, except those covered by what it has told
already. An event travels against the direction of subscriptions: to the local subscribers it matches, and to every
neighbour one of whose subscriptions it matches. A `Router` is the logic of one broker, without any transport: it takes
messages and gives messages. The overlay must be a tree; then every event arrives at a broker once.

When a subscription leaves or changes, those it covered are told first and it is taken back after, so that no event falls
between. Messages may arrive twice: a Subscribe says what holds from now on, and an Unsubscribe of what is not known
does nothing. A broker that comes back after a stop is rebuilt from what it stored (`state`, and the boxes made again
from the texts), and two neighbours who lost sight of each other agree again by `reconcile`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.covering.boxes import Union
from headgate.covering.coverset import BUDGET, CoverSet, Id
from headgate.covering.decision import Procedure
from headgate.errors import UnknownName, UsageError

Peer = Hashable
LOCAL = ""
"""The source of a broker's own subscribers."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    to: Peer
    name: Id
    union: Union | None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    to: Peer
    name: Id


Message = Subscribe | Unsubscribe


class Router:
    """One broker's tables: what it heard from whom, and for every neighbour what it was told and what it need not be.

    `procedure` decides cover; None tells everything to everyone. Names of subscriptions are unique in the network. Only
    subscriptions on one stream cover each other; a union of None stands for one that no box can express.
    """

    def __init__(
        self, neighbours: Sequence[Peer] = (), procedure: Procedure | None = BUDGET, *, demote: str = "none"
    ) -> None:
        self._procedure = procedure
        self._demote = demote
        self._heard: dict[Peer, dict[Id, Union | None]] = {LOCAL: {}}
        self._source: dict[Id, Peer] = {}
        self._stream: dict[Id, str] = {}
        self._told: dict[Peer, dict[str, CoverSet]] = {}
        """By neighbour and stream."""
        for peer in neighbours:
            self._link(peer)

    @property
    def neighbours(self) -> list[Peer]:
        return list(self._told)

    def heard(self, source: Peer = LOCAL) -> Mapping[Id, Union | None]:
        """The subscriptions that came from a neighbour, or from here."""
        return self._heard[source]

    def told(self, peer: Peer) -> list[Id]:
        """The subscriptions a neighbour has been told of."""
        return [name for told in self._told[peer].values() for name in told.active]

    def withheld(self, peer: Peer) -> dict[Id, frozenset[Id]]:
        """The subscriptions a neighbour need not know, each with those it was told that cover it."""
        return {name: by for told in self._told[peer].values() for name, by in told.gates.items()}

    def connect(self, peer: Peer) -> list[Message]:
        """A new neighbour: what it must be told."""
        if peer in self._told:
            raise UsageError(f"{peer} is a neighbour already")
        self._link(peer)
        return [m for name in self._source for m in self._tell(peer, name)]

    def disconnect(self, peer: Peer) -> list[Message]:
        """A neighbour is gone, and with it what came from there."""
        if peer not in self._told:
            raise UnknownName(f"there is no neighbour {peer}")
        names = list(self._heard[peer])
        messages = [m for name in names for m in self.unsubscribe(name)]
        del self._told[peer], self._heard[peer]
        return [m for m in messages if m.to != peer]

    def subscribe(self, name: Id, union: Union | None, source: Peer = LOCAL, *, stream: str = "") -> list[Message]:
        """A subscription arrives: whom to tell. One that is known is replaced."""
        if source not in self._heard:
            raise UnknownName(f"there is no neighbour {source}", "connect it first")
        before = self.unsubscribe(name) if name in self._source else []
        self._heard[source][name] = union
        self._source[name], self._stream[name] = source, stream
        after = [m for peer in self._told if peer != source for m in self._tell(peer, name)]
        # A neighbour that is told the new form replaces the old one by itself; one that need not know it forgets it last.
        told = {m.to for m in after if isinstance(m, Subscribe) and m.name == name}
        heirs = [m for m in before if isinstance(m, Subscribe)]
        gone = [m for m in before if isinstance(m, Unsubscribe) and not (m.name == name and m.to in told)]
        return [*heirs, *after, *gone]

    def unsubscribe(self, name: Id, source: Peer | None = None) -> list[Message]:
        """A subscription leaves: whom to tell that, and what they must know instead.

        With `source`, only if it came from there: a message that arrives late or twice does nothing.
        """
        known = self._source.get(name)
        if source is not None and known != source:
            return []
        if known is None:
            raise UnknownName(f"there is no subscription {name}")
        del self._source[name], self._heard[known][name]
        stream = self._stream.pop(name)
        messages: list[Message] = []
        for peer, by_stream in self._told.items():
            if peer != known:
                told = by_stream[stream]
                active = not told.passive(name)
                change = told.remove(name)
                messages += [Subscribe(peer, other, told.union(other)) for other in change.promoted]
                messages += [Unsubscribe(peer, name)] if active else []
        return messages

    def route(self, matched: Iterable[Id], source: Peer = LOCAL) -> Iterator[Peer]:
        """Where an event from `source` goes that matches these of the subscriptions heard; LOCAL for here."""
        targets = dict.fromkeys(self._source[name] for name in matched if name in self._source)
        return (peer for peer in targets if peer == LOCAL or peer != source)

    # -- lost and found

    def reconcile(self, peer: Peer, known: Iterable[Id]) -> list[Message]:
        """What brings a neighbour into line that says it knows these from here: all of it told anew, the rest taken back.

        What it knows under a name may be an old form, so every subscription is sent; a Subscribe can be repeated."""
        told = {name: s.union(name) for s in self._told[peer].values() for name in s.active}
        return [
            *(Subscribe(peer, name, union) for name, union in told.items()),
            *(Unsubscribe(peer, name) for name in known if name not in told),
        ]

    def state(self) -> dict[str, Any]:
        """The tables without the boxes, in lists: as JSON if names and peers are texts."""
        return {
            "heard": [[source, name, self._stream[name]] for name, source in self._source.items()],
            "told": [[peer, self.told(peer)] for peer in self._told],
        }

    @classmethod
    def rebuilt(
        cls,
        state: Mapping[str, Any],
        union: Callable[[Id], Union | None],
        procedure: Procedure | None = BUDGET,
        *,
        demote: str = "none",
    ) -> tuple[Router, list[Message]]:
        """The router of a stored state, and what neighbours must be told besides.

        `union` gives the boxes of a subscription, made again from its text. What neighbours were told stands, whatever
        cover would say today; what was withheld is decided again, and told if its cover cannot be shown any more.
        """
        router = cls([peer for peer, _ in state["told"]], procedure, demote=demote)
        for source, name, stream in state["heard"]:
            router._heard[source][name] = union(name)
            router._source[name], router._stream[name] = source, stream
        messages: list[Message] = []
        for peer, names in state["told"]:
            told = [name for name in names if router._source.get(name, peer) != peer]
            for name in told:
                router._tell(peer, name, decided=True)
            messages += [Unsubscribe(peer, name) for name in names if name not in router._source]
            messages += [m for name in router._source if name not in told for m in router._tell(peer, name)]
        return router, messages

    # -- inside

    def _link(self, peer: Peer) -> None:
        if peer == LOCAL:
            raise UsageError("a neighbour needs a name")
        self._heard[peer] = {}
        self._told[peer] = {}

    def _tell(self, peer: Peer, name: Id, *, decided: bool = False) -> list[Message]:
        source = self._source[name]
        if source == peer:
            return []
        union, stream = self._heard[source][name], self._stream[name]
        told = self._told[peer].get(stream)
        if told is None:
            told = self._told[peer][stream] = CoverSet(None, self._procedure or BUDGET, demote=self._demote)
        change = told.add_union(name, union, decided=decided or self._procedure is None)
        if told.passive(name):
            return []
        return [Subscribe(peer, name, union), *(Unsubscribe(peer, other) for other in change.demoted)]
