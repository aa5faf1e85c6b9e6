"""Why an event cost what it did: the order of evaluation, what each call decided and saved; and the linked chains."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from headgate.operators import ranking
from headgate.operators.answer import ERROR, FALSE, TRUE
from headgate.operators.index import OperatorIndex
from headgate.operators.learned import Asked, Learned

_TRUTH = {TRUE: "TRUE", FALSE: "FALSE", ERROR: "failed"}


def evaluation(index: OperatorIndex, asked: Sequence[Asked], names: Sequence[str] | None = None) -> str:
    """The calls of one event, in order, each with what it decided; `names` are the subscriptions by slot."""
    lines = []
    for i, step in enumerate(asked, start=1):
        rows = f", {len(step.answer.rows)} row(s)" if step.answer.rows else ""
        how = (
            "shared call" if not step.called else "kept" if isnan(step.milliseconds) else f"{step.milliseconds:.2f} ms"
        )
        line = f"{i}. {index.predicates[step.predicate]} -> {_TRUTH[step.answer.truth]}{rows} ({how})"
        if step.decided:
            shown = [names[s] if names is not None else str(s) for s in step.decided[:5]]
            more = f" and {len(step.decided) - 5} more" if len(step.decided) > 5 else ""
            line += f"; decided {', '.join(shown)}{more}"
        if step.saved:
            line += f"; saved {step.saved} predicate(s)"
        lines.append(line)
    calls = sum(step.called for step in asked)
    lines.append(f"{calls} call(s), {len(index.predicates)} predicate(s) in the book")
    return "\n".join(lines)


def chains_of(index: OperatorIndex, learned: Learned) -> dict[int, list[int]]:
    """The slots in the order of their linked chains, each with its predicates, the most decisive for its cost first."""
    indptr, nodes = ranking.chains(index.program, learned.chance, learned.cost)
    rank = ranking.net_savings(index.program, learned.chance, learned.cost, pairs=0)
    return {s: list(dict.fromkeys(nodes[indptr[s] : indptr[s + 1]].tolist())) for s in np.argsort(rank).tolist()}
