"""The keys at hand, got anew when they are due: host of the key cache's core."""

from typing import final

import structlog
import trio

from actors.keys.key_set import Keys
from actors.node.login.errors import KeysAwayError
from actors.node.login.key_source import KeySource
from fsm.session.key_cache import KeyCacheCore

__all__ = ["KeyRing"]

_log = structlog.get_logger("actors.node")


@final
class KeyRing:
    """The keys of one source.

    One task gets them at a time; who needs them meanwhile waits for that one.
    """

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._core = KeyCacheCore(source.fresh, source.pause)
        self._keys: Keys = {}
        self._why = "its keys were not asked for yet"
        self._getting = trio.Lock()

    async def keys_for(self, name: str) -> Keys:
        """Return the keys at hand, got anew if they are due or none of them has this name.

        Cancelled while they are got: whoever comes next begins anew, after the pause.

        Raises:
            KeysAwayError: There are none, or those there were are stale.
        """
        if self._is_wanted(name):
            await self._get()
        elif name not in self._keys and self._getting.locked():
            # Whoever gets them gets them for us, too.
            await self._getting.acquire()
            self._getting.release()
        if not self._core.are_usable(trio.current_time()):
            raise KeysAwayError(self._source.name, self._why)
        return self._keys

    async def why_not(self) -> str | None:
        """Get the keys if they are due; return why there are none to use, if there are none."""
        if self._core.is_due(trio.current_time()):
            await self._get()
        return None if self._core.are_usable(trio.current_time()) else self._why

    async def aclose(self) -> None:
        """Let go of the source."""
        await self._source.aclose()

    def _is_wanted(self, name: str) -> bool:
        now = trio.current_time()
        is_known = name in self._keys
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
