"""Routing in a network of brokers: who is told of which subscription, and where an event goes.

A broker tells a neighbour the subscriptions it has heard from everyone else, except those covered by what it has told
already. An event travels against the direction of subscriptions: to the local subscribers it matches, and to every
neighbour one of whose subscriptions it matches. A `Router` is the logic of one broker, without any transport: it takes
messages and gives messages. The overlay must be a tree; then every event arrives at a broker once.

When a subscription leaves, those it covered are told first and it is taken back after, so that no event falls between.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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

    `procedure` decides cover; None tells everything to everyone. Names of subscriptions are unique in the network.
    """

    def __init__(
        self, neighbours: Sequence[Peer] = (), procedure: Procedure | None = BUDGET, *, demote: str = "none"
    ) -> None:
        self._procedure = procedure
        self._demote = demote
        self._heard: dict[Peer, dict[Id, Union | None]] = {LOCAL: {}}
        self._source: dict[Id, Peer] = {}
        self._told: dict[Peer, CoverSet] = {}
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
        return list(self._told[peer].active)

    def connect(self, peer: Peer) -> list[Message]:
        """A new neighbour: what it must be told."""
        if peer in self._told:
            raise UsageError(f"{peer} is a neighbour already")
        self._link(peer)
        return [m for name, source in self._source.items() for m in self._tell(peer, name, self._heard[source][name])]

    def disconnect(self, peer: Peer) -> list[Message]:
        """A neighbour is gone, and with it what came from there."""
        names = list(self._heard[peer])
        messages = [m for name in names for m in self.unsubscribe(name)]
        del self._told[peer], self._heard[peer]
        return [m for m in messages if m.to != peer]

    def subscribe(self, name: Id, union: Union | None, source: Peer = LOCAL) -> list[Message]:
        """A subscription arrives: whom to tell. One that is known is replaced."""
        messages = self.unsubscribe(name) if name in self._source else []
        self._heard[source][name] = union
        self._source[name] = source
        return messages + [m for peer in self._told if peer != source for m in self._tell(peer, name, union)]

    def unsubscribe(self, name: Id) -> list[Message]:
        """A subscription leaves: whom to tell that, and what they must know instead."""
        source = self._source.pop(name, None)
        if source is None:
            raise UnknownName(f"there is no subscription {name}")
        del self._heard[source][name]
        messages: list[Message] = []
        for peer, told in self._told.items():
            if peer != source:
                known = not told.passive(name)
                change = told.remove(name)
                messages += [Subscribe(peer, other, told.union(other)) for other in change.promoted]
                messages += [Unsubscribe(peer, name)] if known else []
        return messages

    def route(self, matched: Sequence[Id], source: Peer = LOCAL) -> Iterator[Peer]:
        """Where an event from `source` goes that matches these of the subscriptions heard; LOCAL for here."""
        targets = dict.fromkeys(self._source[name] for name in matched if name in self._source)
        return (peer for peer in targets if peer == LOCAL or peer != source)

    def _link(self, peer: Peer) -> None:
        if peer == LOCAL:
            raise UsageError("a neighbour needs a name")
        self._heard[peer] = {}
        self._told[peer] = CoverSet(None, self._procedure or BUDGET, demote=self._demote)

    def _tell(self, peer: Peer, name: Id, union: Union | None) -> list[Message]:
        told = self._told[peer]
        change = told.add_union(name, union, decided=self._procedure is None)
        if told.passive(name):
            return []
        return [Subscribe(peer, name, union), *(Unsubscribe(peer, other) for other in change.demoted)]
