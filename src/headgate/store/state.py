"""The state of sequences in a store, as bytes with names.

What is put is held back until `flush`, which the transaction calls that also writes what was found: then state, matches
and progress are those of one and the same moment, whatever ends the process.
"""

from __future__ import annotations

from headgate.store.database import Database


class StoredState:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed: dict[str, bytes | None] = {}

    def flush(self) -> None:
        for name, data in self._changed.items():
            if data is None:
                self._database.execute("DELETE FROM state WHERE name = ?", (name,))
            else:
                sql = "INSERT INTO state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes"
                self._database.execute(sql, (name, data))

    def forget(self) -> None:
        """What is held back: it was written, or it will never be."""
        self._changed.clear()

    def get(self, name: str, /) -> bytes | None:
        if name in self._changed:
            return self._changed[name]
        found = self._database.value("SELECT bytes FROM state WHERE name = ?", (name,))
        return None if found is None else bytes(found)

    def put(self, name: str, data: bytes | None) -> None:
        self._changed[name] = data
