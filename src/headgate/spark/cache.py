"""The plans of a host: files named by their content, mapped by every worker process, fetched once.

A plan of a million subscriptions weighs hundreds of megabytes. Spark's own means give each executor its own copy, or
each task its own object; here the first process of a host that needs a plan fetches it under a lock, checks it against
its name, and all processes map the one file, so that they share its pages. What was moved is written down in a ledger.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import xxhash

from headgate.errors import EnvironmentProblem, PlanError
from headgate.operators import operator_pickling
from headgate.plan import Plan, file
from headgate.plan.compile_context import CompileContext
from headgate.plan.segment import Segment
from headgate.plan.sequence_book import SequenceBook
from headgate.runtime.gc_freeze import mark_long_lived

FOLDER = "HEADGATE_CACHE"
"""The environment variable that names the folder; by default one of this user in the folder for temporary files."""
KEPT_DAYS = 7.0
_LEDGER = "moved.jsonl"
_opened: OrderedDict[str, Plan] = OrderedDict()
_segments: OrderedDict[str, Segment] = OrderedDict()
_contexts: OrderedDict[str, CompileContext] = OrderedDict()
_sequences: OrderedDict[str, SequenceBook] = OrderedDict()
_opening = threading.Lock()
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Filed:
    """A file by its content: the digest is its name, everywhere."""

    digest: str
    size: int

    @property
    def name(self) -> str:
        return f"{self.digest}.plan"


@dataclass(frozen=True, slots=True)
class Moved:
    """One line of the ledger: `bytes` is 0 where the file was linked and not copied."""

    digest: str
    bytes: int
    origin: str
    process: int


Fetch = Callable[[Filed, Path], int]
"""Brings a file to a path and says how many bytes it copied; raises OSError where it cannot."""


def folder() -> Path:
    """The folder, made if it is not there. Who can write to it can swap plans, so it must be this user's alone."""
    named = os.environ.get(FOLDER)
    if named:
        return _own(Path(named), parents=True)
    return _own(_own(Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}") / "plans")


def _own(made: Path, *, parents: bool = False) -> Path:
    hint = f"remove it, or name another one with {FOLDER}"
    try:
        made.mkdir(parents=parents, exist_ok=True, mode=0o700)
        known = made.lstat()
    except FileExistsError:
        raise EnvironmentProblem(f"the cache folder {made} is not a folder", hint) from None
    except OSError as problem:
        raise EnvironmentProblem(f"the cache folder {made} cannot be written: {problem.strerror}", hint) from None
    if not stat.S_ISDIR(known.st_mode):
        raise EnvironmentProblem(f"the cache folder {made} is not a folder", hint)
    if known.st_uid != os.getuid():
        raise EnvironmentProblem(f"the cache folder {made} belongs to another user", hint)
    if known.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise EnvironmentProblem(
            f"the cache folder {made} can be written by others", f"chmod 700 {made}, when it is empty"
        )
    return made


def keep(write: Callable[[Path], None], where: Path | None = None) -> Filed:
    """File what `write` writes; a file that is there already stays as it is."""
    home = where or folder()
    home.mkdir(parents=True, exist_ok=True)
    fresh = home / f".new.{os.getpid()}.{time.monotonic_ns()}"
    try:
        write(fresh)
        filed = Filed(digest(fresh), fresh.stat().st_size)
        fresh.replace(home / filed.name)
    finally:
        fresh.unlink(missing_ok=True)
    if where is None:
        _prune(home)
    return filed


def plan(head: Filed, segments: Sequence[Filed], fetches: Sequence[tuple[str, Fetch]], operators: bytes = b"") -> Plan:
    """The plan of a head and its segments, mapped, with the operators it calls; kept open for the next task of this
    process. Plans share the segments they have in common, and what operators taught."""
    called = xxhash.xxh3_128_hexdigest(operators)

    def context() -> CompileContext:
        made = CompileContext(operator_pickling.unpack(operators) if operators else ())
        made.engine.run_apart()
        return made

    def assembled() -> Plan:
        parts = [_kept(_segments, f.digest, partial(_segment, f, fetches)) for f in segments]
        mark_long_lived()
        return Plan.assembled(path(head, fetches), parts, _kept(_contexts, called, context))

    return _kept(_opened, " ".join((called, head.digest, *(f.digest for f in segments))), assembled)


def sequences(filed: Filed, fetches: Sequence[tuple[str, Fetch]], operators: bytes = b"") -> SequenceBook:
    """The sequences of a file, opened once in this process."""

    def opened() -> SequenceBook:
        return SequenceBook.open(path(filed, fetches), operator_pickling.unpack(operators) if operators else ())

    with _opening:
        return _kept(_sequences, filed.digest, opened, most=8)


def _segment(filed: Filed, fetches: Sequence[tuple[str, Fetch]]) -> Segment:
    found = file.read(path(filed, fetches)).get("segment")
    if not isinstance(found, Segment):
        raise PlanError(f"{filed.name} has no segment of a plan")
    return found


def _kept(known: OrderedDict[str, T], key: str, make: Callable[[], T], most: int = 32) -> T:
    found = known.get(key)
    if found is None:
        found = known[key] = make()
        while len(known) > most:
            known.popitem(last=False)
    known.move_to_end(key)
    return found


def path(filed: Filed, fetches: Sequence[tuple[str, Fetch]] = ()) -> Path:
    """The file on this host, fetched from the first origin that has it."""
    home = folder()
    target = home / filed.name
    if _touched(target, filed.digest):
        return target
    with locked(home / f".{filed.digest}.lock"):
        if _touched(target, filed.digest):
            return target
        problems = []
        for origin, fetch in fetches:
            fresh = home / f".{filed.name}.{os.getpid()}"
            try:
                copied = fetch(filed, fresh)
                if digest(fresh) != filed.digest:
                    raise OSError(f"it is not what was sent ({fresh.stat().st_size:,} of {filed.size:,} bytes)")
                fresh.replace(target)
            except OSError as problem:
                problems.append(f"{origin}: {problem}")
                continue
            finally:
                fresh.unlink(missing_ok=True)
            _note(home, Moved(filed.digest, copied, origin, os.getpid()))
            return target
    tried = "; ".join(problems) or "no origin was named"
    raise PlanError(
        f"the plan {filed.digest} does not reach this host: {tried}",
        "name a folder that all hosts see with plans=, or a store that they can reach",
    )


def moved() -> list[Moved]:
    """What came to this host so far."""
    ledger = folder() / _LEDGER
    if not ledger.exists():
        return []
    return [Moved(**json.loads(line)) for line in ledger.read_text("utf-8").splitlines()]


def link_or_copy(source: Path, target: Path) -> int:
    """The same file under a second name where the file system can, else a copy; the bytes copied. A file that another
    user may still write to is copied."""
    try:
        known = source.stat()
        if known.st_uid != os.getuid() or known.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)
        return target.stat().st_size
    return 0


def digest(file: Path) -> str:
    with file.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def forget() -> None:
    """Close what this process has open."""
    for known in (_opened, _segments, _contexts, _sequences):
        known.clear()


def _touched(target: Path, named: str) -> bool:
    """Whether the file is there and is what its name says; if so, it counts as used now."""
    try:
        os.utime(target)
        return digest(target) == named
    except FileNotFoundError:
        return False


@contextmanager
def locked(file: Path) -> Iterator[None]:
    try:
        handle = file.open("a")
    except OSError as problem:
        raise EnvironmentProblem(
            f"the cache folder {file.parent} cannot be written: {problem.strerror}", f"name another one with {FOLDER}"
        ) from None
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _note(home: Path, line: Moved) -> None:
    with (home / _LEDGER).open("a", encoding="utf-8") as f:
        f.write(json.dumps(asdict(line)) + "\n")


def _prune(home: Path) -> None:
    """A file that nobody asked for in a week goes; those who have it mapped keep their pages."""
    oldest = time.time() - KEPT_DAYS * 86400
    for old in home.glob("*.plan"):
        try:
            if old.stat().st_mtime < oldest:
                old.unlink()
        except FileNotFoundError:
            continue
