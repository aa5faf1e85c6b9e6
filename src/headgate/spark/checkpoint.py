"""What Headgate keeps in a checkpoint folder: which query it belongs to.

Spark notices that a checkpoint was made by another query only where the sources happen to differ in number. Here it is
written down: the query's own id, its store and its streams. A folder of another query is refused before anything runs.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from headgate.errors import EnvironmentProblem, UsageError
from headgate.store.logs import Logs

_FILE = "headgate/query.json"


@dataclass(frozen=True)
class Claim:
    """The mark in a checkpoint. `query` is the key of the versions that its batches used."""

    query: str
    store: str
    streams: tuple[str, ...]
    buckets: int = 0
    """How many parts the state of its sequences has; 0 for a query that keeps no state."""
    generation: int = 0
    """How often that state was dealt out anew."""


def claim(checkpoint: str, store: str, streams: tuple[str, ...], *, first: bool = False, buckets: int = 0) -> Claim:
    """Take a checkpoint for a query, or take it up again; UsageError where it is another's.

    `buckets` is written down for a new one; what stands there already stays.

    Over Connect this happens on the server when the `first` batch has begun, and Spark has written there already.
    """
    system, root = folder_of(checkpoint)
    mark = f"{root}/{_FILE}"
    known = _read(system, mark)
    if known is None:
        if not first and system.get_file_info(f"{root}/offsets").type == fs.FileType.Directory:
            raise UsageError(
                f"the checkpoint {checkpoint} was made by a query that is not Headgate's", "name a folder of its own"
            )
        known = Claim(uuid.uuid4().hex[:16], store, streams, buckets)
        _write(system, mark, known)
        # Of two that came at the same time the later one's mark stands: both go by what is there now.
        known = _read(system, mark) or known
    for what, mine, theirs in (("store", store, known.store), ("streams", sorted(streams), sorted(known.streams))):
        if mine != theirs:
            raise UsageError(
                f"the checkpoint {checkpoint} belongs to another query: {what} {_shown(theirs)}, not {_shown(mine)}",
                "name a folder of its own for each query",
            )
    return known


def must_not_be_ahead(checkpoint: str, made: Claim, logs: Logs) -> None:
    """Refuse a checkpoint whose query has done batches that its store has never heard of: every batch is written down
    in the store before it is done, so that the store is older, as one is that was restored from a backup. The events
    and changes that it has since then have numbers which the checkpoint holds for done."""
    done, known = _last_commit(checkpoint), logs.last_batch(made.query)
    if done is not None and (known is None or known < done):
        raise EnvironmentProblem(
            f"the checkpoint {checkpoint} is ahead of its store: it has done batch {done}, and the store knows "
            f"{'none' if known is None else f'of batch {known}'}: it was restored from a backup",
            "restore the checkpoint of the same moment, or move it away and begin anew: matches are kept once by their ids",
        )


def _last_commit(checkpoint: str) -> int | None:
    system, root = folder_of(checkpoint)
    names = (f.base_name for f in system.get_file_info(fs.FileSelector(f"{root}/commits", allow_not_found=True)))
    return max((int(name) for name in names if name.isdecimal()), default=None)


def claimed(checkpoint: str) -> Claim | None:
    """The mark in a checkpoint; None where there is none."""
    system, root = folder_of(checkpoint)
    return _read(system, f"{root}/{_FILE}")


def reclaim(checkpoint: str, made: Claim) -> None:
    """Put another mark in place of the one that is there."""
    system, root = folder_of(checkpoint)
    _write(system, f"{root}/{_FILE}", made)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def folder_of(checkpoint: str) -> tuple[Any, str]:
    """The file system of a checkpoint, and its path there."""
    try:
        if "://" in checkpoint or checkpoint.startswith("file:"):
            system, path = fs.FileSystem.from_uri(checkpoint)
            return system, path.rstrip("/")
        return fs.LocalFileSystem(), str(Path(checkpoint).absolute())
    except (OSError, ValueError) as problem:
        raise EnvironmentProblem(f"the checkpoint {checkpoint} cannot be reached: {problem}") from None


def _read(system: Any, mark: str) -> Claim | None:
    if system.get_file_info(mark).type != fs.FileType.File:
        return None
    with system.open_input_stream(mark) as f:
        written = f.read()
    try:
        found = json.loads(written)
        return Claim(found["query"], found["store"], tuple(found["streams"]), found["buckets"], found["generation"])
    except (ValueError, KeyError, TypeError):
        raise EnvironmentProblem(
            f"{mark} does not say whose checkpoint this is: it has {len(written)} bytes and no mark of a query",
            "bring the file back from a backup, or begin with another checkpoint folder",
        ) from None


def _write(system: Any, mark: str, made: Claim) -> None:
    system.create_dir(mark.rpartition("/")[0], recursive=True)
    with system.open_output_stream(f"{mark}.{made.query}") as f:
        f.write(json.dumps(asdict(made)).encode())
    system.move(f"{mark}.{made.query}", mark)
