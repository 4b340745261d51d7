"""Sources of public keys (files and HTTP servers), and a cache that fetches their keys in time."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

import trio
from typing_extensions import override

from actors.keys.key_set import Keys, log_skipped, read_key_set
from actors.kit.files import errors_of
from actors.kit.http_client import HttpClient, ServerUrl
from actors.kit.log import get_logger
from fsm.session.assertion import KeyCacheCore
from specs.errors import PlaceError
from specs.limits import node

_log = get_logger("actors.keys")


class KeysAwayError(PlaceError):
    """A set of public keys cannot be read at the moment; the operator may have to act."""

    summary = "cannot get the keys of {}"


class KeySource(ABC):
    """File or server from which a set of public keys can be fetched repeatedly.

    Attributes:
        fresh: Seconds after which fetched keys count as old and are fetched again.
        pause: Minimum number of seconds between two attempts to fetch.
    """

    name: str
    fresh: float
    pause: float
    _skipped: tuple[str, ...] = ()

    @abstractmethod
    async def fetch(self) -> Keys:
        """Fetch the current keys from the file or server.

        Raises:
            KeysAwayError: The keys cannot be fetched, or are invalid.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections to the source."""

    def _read(self, text: bytes) -> Keys:
        """Read the text of a key set; log its skipped keys if they differ from the last time."""
        keys, skipped = read_key_set(text)
        if skipped and skipped != self._skipped:
            log_skipped(self.name, skipped)
        self._skipped = skipped
        return keys


class KeyFile(KeySource):
    """File with a set of public keys; it is read again at a login, at most once a second."""

    fresh = node.KEY_FILE_FRESH
    pause = node.KEY_FILE_PAUSE

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
        """Read the key set from the file.

        This method blocks.

        Raises:
            KeysAwayError: The file cannot be read, or has no keys.
        """
        with errors_of(self.name, KeysAwayError), self._path.open("rb") as file:
            return self._read(file.read(node.JWKS_BYTES + 1))


_OK: Final = 200


class KeyUrl(KeySource):
    """HTTP server that publishes a set of public keys; redirects are not followed."""

    fresh = node.KEYS_FRESH
    pause = node.KEYS_PAUSE

    def __init__(self, url: ServerUrl) -> None:
        self.name = url.text
        self._client = HttpClient(url, node.JWKS_BYTES)

    @override
    async def fetch(self) -> Keys:
        with errors_of(self.name, KeysAwayError):
            try:
                with trio.fail_after(node.KEYS_TIMEOUT):
                    answer = await self._client.ask("GET", "")
            except trio.TooSlowError as exc:
                why = f"no answer within {node.KEYS_TIMEOUT} s"
                raise KeysAwayError(self.name, why) from exc
            if answer.status != _OK:
                raise KeysAwayError(self.name, f"it answers with status {answer.status}")
            return self._read(answer.body)

    @override
    async def aclose(self) -> None:
        await self._client.aclose()


class KeyRing:
    """Cache of the public keys of one source.

    One task fetches the keys at a time; other logins wait for that task.
    """

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._core = KeyCacheCore(source.fresh, source.pause)
        self._keys: Keys = {}
        self._why = "its keys were not asked for yet"
        self._getting = trio.Lock()

    async def keys_for(self, name: str | None) -> Keys:
        """Return the keys; fetch them first if they are old or the wanted key is missing.

        Args:
            name: Name of the wanted key; None: any key may be the wanted one.

        If cancelled, the next login fetches again, after the pause.

        Raises:
            KeysAwayError: No keys could be fetched, or the fetched keys are too old.
        """
        if self._is_wanted(name):
            await self._get()
        elif name is not None and name not in self._keys and self._getting.locked():
            # A fetch by another task serves this one, too.
            await self._getting.acquire()
            self._getting.release()
        if not self._core.are_usable(trio.current_time()):
            raise KeysAwayError(self._source.name, self._why)
        return self._keys

    def known_keys(self) -> Keys:
        """Return the cached keys without fetching; empty if they are too old to be used."""
        return self._keys if self._core.are_usable(trio.current_time()) else {}

    async def newer(self) -> Keys | None:
        """Fetch the keys again and return them; None: they were just fetched, or cannot be fetched.

        If the call is cancelled, the next login fetches the keys again, after the pause.
        """
        if not self._core.may_be_tried(trio.current_time()):
            return None
        await self._get()
        return self._keys if self._core.are_usable(trio.current_time()) else None

    async def why_not(self) -> str | None:
        """Fetch the keys if they are old; return why they cannot be used, or None."""
        if self._core.is_due(trio.current_time()):
            await self._get()
        return None if self._core.are_usable(trio.current_time()) else self._why

    async def aclose(self) -> None:
        """Close the source of the keys."""
        await self._source.aclose()

    def _is_wanted(self, name: str | None) -> bool:
        now = trio.current_time()
        is_known = name in self._keys if name is not None else bool(self._keys)
        return self._core.is_due(now) if is_known else self._core.may_be_tried(now)

    async def _get(self) -> None:
        async with self._getting:
            self._core.tried(trio.current_time())
            try:
                self._keys = await self._source.fetch()
            except KeysAwayError as exc:
                self._why = exc.reason
                _log.warning("login keys", source=exc.where, why=exc.reason)
            else:
                self._core.got(trio.current_time())
