"""One small face for two databases: SQLite in a file, PostgreSQL by URL.

Statements are written once, with `?` for values. SQLite runs in WAL mode, so that readers and one writer do not wait
for each other. Writers go one at a time in both: versions and log ids must become visible in their order, or a follower
that has seen 7 would never look for a 6 that commits later.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.errors import EnvironmentProblem, UsageError
from headgate.store.migrations import STEPS

log = logging.getLogger("headgate.store")
Row = tuple[Any, ...]
PATIENCE_S = 60.0


class StoreUnavailable(EnvironmentProblem):
    """The database does not answer now; the same call may work later. Nothing of it took effect."""

    code = "unavailable"


_WRITERS = 0x6865616467617465
"""The key of PostgreSQL's advisory lock that writers take turns with."""


_PASSING = frozenset(
    getattr(sqlite3, f"SQLITE_{name}")
    for name in ("BUSY", "LOCKED", "NOMEM", "READONLY", "IOERR", "FULL", "CANTOPEN", "PROTOCOL")
)
"""What SQLite may say about its surroundings, not about the statement: the disk is full, say."""


def _check_texts(values: Sequence[Any]) -> None:
    """PostgreSQL cannot keep NUL in a text; so that a store can be moved, neither can SQLite."""
    for value in values:
        if isinstance(value, str) and "\0" in value:
            raise UsageError("a text holds the character NUL, which cannot be kept", "leave it out")


def _no_text(problem: UnicodeEncodeError) -> UsageError:
    return UsageError(f"a text cannot be kept: {problem.reason}", "use UTF-8 text")


class Database:
    """Safe for several threads: each has its own connection. Pickled, it is its URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._postgres = url.startswith(("postgresql://", "postgres://"))
        if not self._postgres and "://" in url and not url.startswith("sqlite://"):
            raise UsageError(f"{url} is no store", "a store is the path of a file, or postgresql://...")
        self._local = threading.local()
        self._open: list[Any] = []
        """The connections of all threads."""
        try:
            self._migrate()
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> tuple[type[Database], tuple[str]]:
        return type(self), (self.url,)

    @property
    def path(self) -> Path | None:
        """The file of a SQLite store."""
        return None if self._postgres else Path(self.url.removeprefix("sqlite://"))

    # -- statements

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """What a query finds."""
        _check_texts(values)
        with self._answering() as connection:
            return list(connection.execute(self._spelt(sql), values).fetchall())

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        found = self.rows(sql, values)
        return found[0][0] if found else None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> int:
        """The number of rows that a statement changed."""
        _check_texts(values)
        with self._answering() as connection:
            return int(connection.execute(self._spelt(sql), values).rowcount)

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        listed = list(rows)
        for values in listed:
            _check_texts(values)
        with self._answering() as connection:
            connection.cursor().executemany(self._spelt(sql), listed)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction of the only writer. All of it takes effect, or nothing. Inside another one it is part of that."""
        if getattr(self._local, "writing", False):
            yield
            return
        with self._answering() as connection:
            self._local.writing = True
            try:
                if self._postgres:
                    connection.execute("BEGIN")
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_WRITERS,))
                else:
                    connection.execute("BEGIN IMMEDIATE")
                yield
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise
            finally:
                self._local.writing = False

    def _roll_back(self, connection: Any) -> None:
        """End a transaction that has failed. The database may have ended it already, as SQLite does on a full disk; if it
        cannot even say so, the connection is of no more use."""
        if not self._alive() or not (self._postgres or connection.in_transaction):
            return
        try:
            connection.execute("ROLLBACK")
        except Exception:
            # Whoever waits must hear of the first problem, not of this one.
            log.warning("a transaction could not be rolled back", exc_info=True)
            self.close()

    @contextmanager
    def _answering(self) -> Iterator[Any]:
        """This thread's connection. If the server goes away meanwhile it is dropped, and the next use opens another."""
        connection = self._connection()
        if not self._postgres:
            try:
                yield connection
            except UnicodeEncodeError as problem:
                raise _no_text(problem) from None
            except sqlite3.DatabaseError as problem:
                # The code of the kind of problem is in the last byte.
                if (getattr(problem, "sqlite_errorcode", 0) & 0xFF) in _PASSING:
                    raise StoreUnavailable(f"the store does not answer: {problem}") from None
                raise
            return
        import psycopg

        try:
            yield connection
        except UnicodeEncodeError as problem:
            raise _no_text(problem) from None
        except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError) as problem:
            if not self._alive():
                self._local.writing = False
                self.close()
            raise StoreUnavailable(f"the store does not answer: {str(problem).strip()}") from None

    def _alive(self) -> bool:
        """Whether this thread's connection can still be used."""
        connection = getattr(self._local, "connection", None)
        return connection is not None and not (self._postgres and (connection.closed or connection.broken))

    def close(self) -> None:
        """Close this thread's connection; the next statement opens another."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            del self._local.connection
            self._open = [c for c in self._open if c is not connection]

    def close_all(self) -> None:
        """Close the connections of all threads, when nobody works with them any more."""
        opened, self._open = self._open, []
        for connection in opened:
            connection.close()
        self._local = threading.local()

    # -- connections

    def _spelt(self, sql: str) -> str:
        return sql.replace("?", "%s") if self._postgres else sql

    def _connection(self) -> Any:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._postgresql() if self._postgres else self._sqlite()
            self._open.append(connection)
        return connection

    def _sqlite(self) -> sqlite3.Connection:
        assert self.path is not None
        try:
            _only_for_its_owner(self.path)
            made = sqlite3.connect(self.path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False)
            made.execute("PRAGMA journal_mode = WAL")
            made.execute("PRAGMA synchronous = FULL")
        except (sqlite3.Error, OSError) as problem:
            raise EnvironmentProblem(
                f"cannot open the store {self.path}: {problem}", "is it a file you may write?"
            ) from None
        return made

    def _postgresql(self) -> Any:
        try:
            import psycopg
        except ImportError:
            hint = "pip install 'psycopg[binary]'"
            raise EnvironmentProblem("a store on PostgreSQL needs the package psycopg", hint) from None
        try:
            return psycopg.connect(self.url, autocommit=True)
        except psycopg.Error as problem:
            raise StoreUnavailable(f"cannot reach the store: {str(problem).strip()}") from None

    # -- tables

    def _migrate(self) -> None:
        """Bring the tables up to this version; a store of a newer version is left alone."""
        applied = self._applied()
        if applied > len(STEPS):
            raise EnvironmentProblem(
                f"the store has tables of version {applied}, this Headgate knows {len(STEPS)}", "use a newer Headgate"
            )
        if applied == len(STEPS):
            return
        words = {
            "serial": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
            if self._postgres
            else "INTEGER PRIMARY KEY AUTOINCREMENT",
            "bytes": "BYTEA" if self._postgres else "BLOB",
            "now": repr(time.time()),
        }
        with self.writing():
            # Looked at again: another process may have been first.
            for number in range(self._applied(), len(STEPS)):
                for step in STEPS[number]:
                    if isinstance(step, str):
                        self.execute(step.format(**words))
                    else:
                        step(self)
                if number == 0:
                    self.execute("INSERT INTO facts VALUES ('store', ?)", (str(uuid.uuid4()),))
                    self.execute("INSERT INTO facts VALUES ('tables', '0')")
                self.execute("UPDATE facts SET value = ? WHERE name = 'tables'", (str(number + 1),))

    def _applied(self) -> int:
        known = (
            "SELECT 1 FROM information_schema.tables WHERE table_name = 'facts' AND table_schema = current_schema()"
            if self._postgres
            else "SELECT 1 FROM sqlite_master WHERE name = 'facts'"
        )
        if self.value(known) is None:
            return 0
        return int(self.value("SELECT value FROM facts WHERE name = 'tables'"))


def _only_for_its_owner(path: Path) -> None:
    """A store holds what people subscribe to, and hashes of their keys. SQLite gives its other files the same mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        found = path.stat()
        # Whoever opened it to a group did so on purpose; a file that everybody can read was made by an older Headgate.
        if found.st_mode & 0o004 and found.st_uid == os.geteuid():
            path.chmod(0o600)
