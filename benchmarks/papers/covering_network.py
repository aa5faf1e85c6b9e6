"""A simulated network of brokers, and what it costs: messages counted, deliveries checked, losses measured.

For planning and for the paper's section 5: how much traffic group cover saves along a chain, and how likely an event is
lost when a probabilistic decision withholds a subscription.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.covering.boxes import Union
from headgate.covering.coverset import BUDGET, Id
from headgate.covering.decision import Procedure
from headgate.covering.routing import LOCAL, Message, Peer, Router, Subscribe
from headgate.covering.space import Box
from headgate.errors import UnknownName, UsageError

Event = Mapping[str, Any]


@dataclass
class Traffic:
    """Messages between brokers so far."""

    subscriptions: int = 0
    unsubscriptions: int = 0
    events: int = 0
    stored: int = 0
    """Entries in routing tables about neighbours, now."""


class Network:
    """Brokers and links between them, which form a tree; messages arrive at once and in order."""

    def __init__(
        self,
        links: Iterable[tuple[Peer, Peer]],
        procedure: Procedure | None = BUDGET,
        *,
        demote: str = "none",
    ) -> None:
        self.brokers: dict[Peer, Router] = {}
        self.traffic = Traffic()
        self._home: dict[Id, Peer] = {}
        self._demote = demote
        self._procedures: dict[Peer, Procedure | None] = {}
        edges: dict[Peer, list[Peer]] = {}
        for a, b in links:
            edges.setdefault(a, []).append(b)
            edges.setdefault(b, []).append(a)
        _check_tree(edges)
        for i, (name, peers) in enumerate(edges.items()):
            self._procedures[name] = _seeded(procedure, i)
            self.brokers[name] = Router(peers, self._procedures[name], demote=demote)

    @classmethod
    def chain(cls, length: int, procedure: Procedure | None = BUDGET, *, demote: str = "none") -> Network:
        """Brokers 1 to `length` in a row."""
        return cls([(i, i + 1) for i in range(1, length)], procedure, demote=demote)

    def subscribe(self, name: Id, union: Union | None, at: Peer) -> None:
        self._home[name] = at
        self._carry(at, self.brokers[at].subscribe(name, union))

    def unsubscribe(self, name: Id) -> None:
        at = self._home.pop(name, None)
        if at is None:
            raise UnknownName(f"there is no subscription {name}")
        self._carry(at, self.brokers[at].unsubscribe(name))

    def restart(self, at: Peer) -> None:
        """A broker stops and comes back from its stored state; its neighbours are brought into line."""
        old = self.brokers[at]
        unions = {n: u for s in (LOCAL, *old.neighbours) for n, u in old.heard(s).items()}
        router, messages = Router.rebuilt(old.state(), unions.__getitem__, self._procedures[at], demote=self._demote)
        self.brokers[at] = router
        self._carry(at, messages)
        for peer in router.neighbours:
            self._carry(at, router.reconcile(peer, list(self.brokers[peer].heard(at))))

    def publish(self, event: Event, at: Peer) -> set[Id]:
        """The subscriptions that are notified of an event published at a broker."""
        notified: set[Id] = set()
        waiting: deque[tuple[Peer, Peer]] = deque([(at, LOCAL)])
        while waiting:
            here, source = waiting.popleft()
            router = self.brokers[here]
            matched = [n for s in (LOCAL, *router.neighbours) for n, u in router.heard(s).items() if _matches(u, event)]
            for target in router.route(matched, source):
                if target == LOCAL:
                    notified.update(n for n in matched if n in router.heard())
                else:
                    self.traffic.events += 1
                    waiting.append((target, here))
        return notified

    def stored(self) -> int:
        """How many entries all routing tables hold about neighbours."""
        return sum(len(r.heard(peer)) for r in self.brokers.values() for peer in r.neighbours)

    def _carry(self, sender: Peer, messages: Sequence[Message]) -> None:
        waiting: deque[tuple[Peer, Message]] = deque((sender, m) for m in messages)
        while waiting:
            source, message = waiting.popleft()
            router = self.brokers[message.to]
            if isinstance(message, Subscribe):
                self.traffic.subscriptions += 1
                answers = router.subscribe(message.name, message.union, source)
            else:
                self.traffic.unsubscriptions += 1
                answers = router.unsubscribe(message.name, source)
            waiting.extend((message.to, m) for m in answers)
        self.traffic.stored = self.stored()


def _matches(union: Union | None, event: Event) -> bool:
    if union is None:
        raise UsageError("a simulated network matches boxes only")
    return any(holds(box, event) for box in union)


def holds(box: Box, event: Mapping[str, Any]) -> bool:
    """Whether an event, a nested dict, lies in a box whose dimensions are all concrete."""
    for dimension, portion in box.items():
        assert dimension.path is not None, "an event has no value for an opaque dimension"
        value: Any = event
        for part in dimension.path:
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:
            if not portion.missing:
                return False
        else:
            at = dimension.domain.at_least(value)
            if not any(low <= at < high for low, high in portion.spans):
                return False
    return True


def _seeded(procedure: Procedure | None, broker: int) -> Procedure | None:
    """Brokers guess independently of each other."""
    if procedure is None:
        return None
    p = procedure
    return Procedure(p.mode, p.budget, p.error, p.trials, p.seed + 7919 * broker)


def _check_tree(edges: Mapping[Peer, Sequence[Peer]]) -> None:
    if not edges:
        raise UsageError("a network needs at least one link")
    links = sum(map(len, edges.values())) // 2
    seen = {next(iter(edges))}
    waiting = list(seen)
    while waiting:
        for peer in edges[waiting.pop()]:
            if peer not in seen:
                seen.add(peer)
                waiting.append(peer)
    if len(seen) < len(edges) or links != len(edges) - 1:
        raise UsageError("the links between brokers must form one tree", "drop the links that close a circle")


def found_probability(brokers: int, rho: float, share: float, trials: int) -> float:
    """Proposition 4: the chance that an event is found along a chain although s seems covered at every hop.

    `rho` is the chance that a broker publishes it, `share` the part of s that a witness fills, `trials` RSPC's guesses.
    """
    forwarded = 1.0 - (1.0 - share) ** trials
    return sum(rho * ((1.0 - rho) * forwarded) ** i for i in range(brokers))


def loss_probability(brokers: int, rho: float, share: float, trials: int) -> float:
    """Of the events that are published somewhere along the chain, the part that is not found."""
    published = 1.0 - (1.0 - rho) ** brokers
    return 1.0 - found_probability(brokers, rho, share, trials) / published
