"""Where the keys come from that verify logins: the seam, and a file."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import final

import trio
from typing_extensions import override

from actors.keys.errors import BadKeysError
from actors.keys.key_set import Keys, read_keys
from actors.node.login.errors import KeysAwayError
from specs.limits.login import JWKS_BYTES, KEY_FILE_FRESH, KEY_FILE_PAUSE

__all__ = ["KeyFile", "KeySource"]


class KeySource(ABC):
    """Gives out the keys of the day.

    Attributes:
        name: What an operator calls it.
        fresh: Seconds for which what it gave need not be asked for again.
        pause: Seconds between two attempts.
    """

    name: str
    fresh: float
    pause: float

    @abstractmethod
    async def fetch(self) -> Keys:
        """Get the keys as they are now.

        Raises:
            KeysAwayError: They cannot be had, or are none.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of what was opened."""


@final
class KeyFile(KeySource):
    """A file with a set of keys; read again when somebody logs in and a second is over."""

    fresh = KEY_FILE_FRESH
    pause = KEY_FILE_PAUSE

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path

    @override
    async def fetch(self) -> Keys:
        return await trio.to_thread.run_sync(self.read)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    def read(self) -> Keys:
        """Read the file; blocks.

        Raises:
            KeysAwayError: It cannot be read, or holds none.
        """
        try:
            with self._path.open("rb") as file:
                return read_keys(file.read(JWKS_BYTES + 1))
        except OSError as exc:
            raise KeysAwayError(self.name, exc.strerror or "it cannot be read") from exc
        except BadKeysError as exc:
            raise KeysAwayError(self.name, exc.reason) from exc
