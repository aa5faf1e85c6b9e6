"""Rules as users of EventBridge write them, over nested events of about 900 bytes.

Each rule names a source and, four times in five, an account; then one to three of: a state among some, a region, the
family of an instance type by its prefix, a tag, an optional field that is there. `ranges` adds to every rule a range of a
number, and to the choices a user that is none of some. Invented, since no public workload has this shape; the events
follow the published examples of such events in form and size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from benchmarks.workloads.dialects import Condition, Rule

ACCOUNTS = 2_000
SOURCES = [f"acme.{name}" for name in ("compute", "store", "queue", "mail", "billing", "build", "search", "edge")]
KINDS = ["State Change", "Object Created", "Object Deleted", "Login", "Alarm", "Scheduled Run", "Invoice", "Deployment"]
STATES = ["pending", "running", "stopping", "stopped", "failed", "terminated"]
REGIONS = [f"{area}-{side}-{n}" for area in ("eu", "us", "ap") for side in ("west", "east") for n in (1, 2)]
TYPES = [f"{family}{n}.{size}" for family in "cmrt" for n in (5, 6, 7) for size in ("large", "xlarge", "metal")]
USERS = [f"user{n}" for n in range(200)]
TEAMS = [f"team{n}" for n in range(50)]
_WORDS = ("the", "volume", "was", "attached", "and", "checked", "before", "instance", "joined", "its", "group", "zone")

SCHEMA = (
    "`detail-type` STRING, source STRING, account STRING, region STRING, resources ARRAY<STRING>, "
    "detail.state STRING, detail.instance.type STRING, detail.user.name STRING, detail.user.session STRING, "
    "detail.request.bytes BIGINT, detail.request.latency BIGINT, detail.tags.env STRING, detail.tags.team STRING"
)


def rules(count: int, ranges: bool = False, seed: int = 1) -> Iterator[Rule]:
    rng = Random(seed)
    choices: list[Callable[[], Condition]] = [
        lambda: Condition(("detail", "state"), "in", tuple(sorted(rng.sample(STATES, rng.randint(1, 3))))),
        lambda: Condition(("region",), "=", rng.choice(REGIONS)),
        lambda: Condition(("detail", "instance", "type"), "prefix", rng.choice("cmrt") + str(rng.choice((5, 6, 7)))),
        lambda: Condition(("detail", "tags", "team"), "=", rng.choice(TEAMS)),
        lambda: Condition(("detail", "user", "session"), "exists"),
        lambda: Condition(("detail", "tags", "env"), "=", rng.choice(("prod", "test", "dev"))),
    ]
    if ranges:
        choices.append(lambda: Condition(("detail", "user", "name"), "not in", tuple(sorted(rng.sample(USERS[:8], 2)))))
    for _ in range(count):
        made = [Condition(("source",), "=", rng.choice(SOURCES))]
        if rng.random() < 0.8:
            made.append(Condition(("account",), "=", _account(rng)))
        made += [make() for make in rng.sample(choices, rng.randint(1, 3))]
        if len(made) < 3:
            made.append(Condition(("detail-type",), "=", rng.choice(KINDS)))
        if ranges:
            low = rng.randrange(0, 9_000)
            made.append(
                Condition(("detail", "request", "latency"), "between", (low, low + rng.randrange(1_000, 5_000)))
            )
        yield tuple(made)


def _account(rng: Random) -> str:
    return f"{100_000_000_000 + rng.randrange(ACCOUNTS) * 7919:012}"


def events(count: int, seed: int = 2) -> Iterator[dict[str, Any]]:
    rng = Random(seed)
    for n in range(count):
        account, region = _account(rng), rng.choice(REGIONS)
        instance = f"i-{rng.randrange(1 << 48):012x}"
        user: dict[str, Any] = {"name": rng.choice(USERS), "role": f"role-{rng.randrange(40)}"}
        if rng.random() < 0.5:
            user["session"] = f"{rng.randrange(1 << 64):016x}"
        yield {
            "version": "0",
            "id": f"{rng.randrange(1 << 64):016x}-{n:08x}",
            "detail-type": rng.choice(KINDS),
            "source": rng.choice(SOURCES),
            "account": account,
            "time": f"2026-03-{1 + n % 28:02}T{n % 24:02}:{n % 60:02}:00Z",
            "region": region,
            "resources": [f"arn:acme:compute:{region}:{account}:instance/{instance}"],
            "detail": {
                "state": rng.choice(STATES),
                "instance": {"id": instance, "type": rng.choice(TYPES), "zone": f"{region}{rng.choice('abc')}"},
                "user": user,
                "request": {
                    "ip": f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}",
                    "bytes": rng.randrange(1_000_000),
                    "latency": rng.randrange(10_000),
                },
                "tags": {"env": rng.choice(("prod", "test", "dev")), "team": rng.choice(TEAMS), "cost": f"c{n % 97}"},
                "note": " ".join(rng.choice(_WORDS) for _ in range(62)),
            },
        }
