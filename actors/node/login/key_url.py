"""Keys of a server of the operator's choice, over HTTP."""

from typing import Final, final

import trio
from typing_extensions import override

from actors.keys.errors import BadKeysError
from actors.keys.key_set import Keys, read_keys
from actors.kit.http_client import HttpClient, HttpError, ServerUrl
from actors.node.login.errors import KeysAwayError
from actors.node.login.key_source import KeySource
from specs.limits.login import JWKS_BYTES, KEYS_FRESH, KEYS_PAUSE, KEYS_TIMEOUT

__all__ = ["KeyUrl"]

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
