"""The SQLite file in which a runtime stores data objects.

What `commit` has returned for survives the process and a failure of power. What is stored is
known in memory, too, so that a file that breaks while the runtime runs can be written anew.

How large the file is follows what is stored now, not what ever was: per object its value and
about 200 bytes for each observer and each guest, per copy its value; what is deleted leaves
it, and SQLite uses its pages again. The log beside it stays below a few MB.

The error of a runtime's store.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

import trio

from actors.kit.database import DatabaseForm, Durability, FileLock, open_database
from actors.runtime.store.rows import TABLES, VERSION, clear, prepare, read, whole, write
from fsm.sync.stored import Keep, Rest
from specs.errors import PlaceError, ProtoflyError

__all__ = ["ObjectFile", "StoreFileError"]


@final
class StoreFileError(PlaceError):
    """The file in which a runtime stores data objects cannot be used."""

    told = "cannot use the store {}"


_FORM: Final = DatabaseForm(TABLES, VERSION, "runtime", Durability.POWER, is_private=True)


@final
class ObjectFile:
    """A file that no other process may store objects in meanwhile.

    Args:
        path: Where it is; made, for its owner only, if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.rest: Final = Rest()
        self._lock = FileLock(path, "runtime")
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    def load(self) -> Rest:
        """Open the file, and return what is stored; blocks.

        Raises:
            StoreFileError: It cannot be read, or is none of ours, or another process has it.
        """
        try:
            self._lock.take()
            connection = self._open()
            with connection:
                prepare(connection)
            found = read(connection)
        except (sqlite3.Error, OSError, ValueError, TypeError, ProtoflyError) as exc:
            self.close()
            raise StoreFileError(self.path, str(exc)) from exc
        self.rest.follow(whole(found))
        return found

    async def commit(self, changes: Sequence[Keep]) -> None:
        """Make changes durable, all or none, in order.

        If cancelled before the write begins, nothing is written; a write that has begun ends.

        Raises:
            StoreFileError: It cannot be written.
        """
        if changes:
            await trio.to_thread.run_sync(self._write, tuple(changes))
            self.rest.follow(changes)

    def close(self) -> None:
        """Let go of the file."""
        self._disconnect()
        self._lock.release()

    def _open(self) -> sqlite3.Connection:
        """Return the connection; one thread at a time uses it: the loop's, or a commit's."""
        if self._connection is None:
            self._connection = open_database(self.path, _FORM)
            self._inode = self.path.stat().st_ino
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _write(self, changes: Sequence[Keep]) -> None:
        try:
            is_new = self._connection is None
            connection = self._open()
            self._check_place()
            with connection:
                if is_new:
                    self._write_anew(connection)
                write(connection, changes)
        except (sqlite3.Error, OSError, StoreFileError) as exc:
            # Whatever is wrong with this connection may not be wrong with a new one.
            self._disconnect()
            if isinstance(exc, StoreFileError):
                raise
            raise StoreFileError(self.path, str(exc)) from exc

    def _check_place(self) -> None:
        """Refuse to write to a file that nobody will find any more: moved, removed or replaced."""
        if self.path.stat().st_ino != self._inode:
            raise StoreFileError(self.path, "another file has taken its place")

    def _write_anew(self, connection: sqlite3.Connection) -> None:
        prepare(connection)
        clear(connection)
        write(connection, whole(self.rest))
