"""Files in the store, by their digest: how plans reach workers that share nothing else with the driver."""

from __future__ import annotations

from pathlib import Path

from headgate.store.database import Database

_PART = 8 << 20
"""Databases limit a value to a gigabyte or less, and a part must fit into memory on its way."""


class Files:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, digest: str, source: Path) -> None:
        """Keep a file; one that is there already stays."""
        if self.size(digest):
            return
        with self._database.writing(), source.open("rb") as f:
            self._database.execute("DELETE FROM files WHERE digest = ?", (digest,))
            part = 0
            while chunk := f.read(_PART):
                self._database.execute("INSERT INTO files VALUES (?, ?, ?)", (digest, part, chunk))
                part += 1

    def fetch(self, digest: str, target: Path) -> int:
        """Write a file to a path; the number of its bytes. FileNotFoundError where the store lacks it."""
        part = size = 0
        with target.open("wb") as f:
            while (chunk := self._part(digest, part)) is not None:
                size += f.write(chunk)
                part += 1
        if not part:
            raise FileNotFoundError(f"the store has no file {digest}")
        return size

    def size(self, digest: str) -> int:
        found = self._database.value("SELECT sum(length(bytes)) FROM files WHERE digest = ?", (digest,))
        return int(found or 0)

    def drop(self, digest: str) -> None:
        self._database.execute("DELETE FROM files WHERE digest = ?", (digest,))

    def _part(self, digest: str, part: int) -> bytes | None:
        found = self._database.value("SELECT bytes FROM files WHERE digest = ? AND part = ?", (digest, part))
        return None if found is None else bytes(found)
