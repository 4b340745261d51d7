"""The sources of the keys that verify logins: a file, or an HTTP server of the operator."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, final

import trio
from typing_extensions import override

from actors.keys.key_set import BadKeysError, Keys, read_keys
from actors.kit.http_client import HttpClient, HttpError, ServerUrl
from actors.node.login.errors import KeysAwayError
from specs.limits.login import (
    JWKS_BYTES,
    KEY_FILE_FRESH,
    KEY_FILE_PAUSE,
    KEYS_FRESH,
    KEYS_PAUSE,
    KEYS_TIMEOUT,
)

__all__ = ["KeyFile", "KeySource", "KeyUrl"]


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


_OK: Final = 200


@final
class KeyUrl(KeySource):
    """A server that gives its keys out over HTTP; nothing it says leads anywhere else."""

    fresh = KEYS_FRESH
    pause = KEYS_PAUSE

    def __init__(self, url: ServerUrl) -> None:
        self.name = url.text
        self._client = HttpClient(url, JWKS_BYTES)

    @override
    async def fetch(self) -> Keys:
        try:
            with trio.fail_after(KEYS_TIMEOUT):
                answer = await self._client.ask("GET", "")
        except trio.TooSlowError as exc:
            raise KeysAwayError(self.name, f"no answer within {KEYS_TIMEOUT} s") from exc
        except HttpError as exc:
            raise KeysAwayError(self.name, exc.reason) from exc
        if answer.status != _OK:
            raise KeysAwayError(self.name, f"it answers with status {answer.status}")
        try:
            return read_keys(answer.body)
        except BadKeysError as exc:
            raise KeysAwayError(self.name, exc.reason) from exc

    @override
    async def aclose(self) -> None:
        await self._client.aclose()
