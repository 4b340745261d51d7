"""The global registry at `global://registry`: signed records of users (CON-03, M-56, M-57).

A record is a JSON Web Token that its user signed. The node checks its form and size only; a reader
of the record must verify the signature.
"""

import binascii
import re
from abc import ABC, abstractmethod
from base64 import urlsafe_b64decode
from functools import partial
from typing import Final

import orjson
import trio
from typing_extensions import override

from actors.kit.back_ends.requests import Asked, BackEndError, code_of
from actors.kit.http_client import HttpAnswer, HttpClient, HttpError, ServerUrl, path_of
from actors.node.connectors import service
from specs.addresses.address import canonical, scheme_of
from specs.bodies.registry import ReadRecord
from specs.bodies.session import GlobalRecord
from specs.errors import BadMessageError, BadUrlError
from specs.limits.protocol import MAX_JSON_TEXT
from specs.message import MessageType
from specs.reply_code import Code
from transports.bodies import read_body

_SCHEME: Final = "user-guid"
_FOUND: Final = "OK"
_MISSING: Final = "Not Found"
_TOKEN: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_VALUES: Final = ("value", "Value", "data")
"""Names that servers give to the record in their answer (C-58)."""


class GlobalRecords(ABC):
    """The store of the signed records of users, for all domains."""

    @abstractmethod
    async def read(self, guid: str) -> service.Replied:
        """Return the record of a user.

        If cancelled, nothing has changed there.

        Raises:
            HttpError: The back end does not answer.
            BackEndError: The answer of the back end is invalid.
        """

    @abstractmethod
    async def publish(self, guid: str, token: str) -> service.Replied:
        """Store a record of a user; an objection of the back end is returned (409 and others).

        Args:
            guid: GUID of the user.
            token: Signed token with the record.

        If cancelled, the record may have been stored.

        Raises:
            HttpError: The back end does not answer.
            BackEndError: The answer of the back end is invalid.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close the client, within bounds.

        If cancelled, the client is closed all the same.
        """


class HttpGlobalRecords(GlobalRecords):
    """A global registry with `GET` and `PUT /guid/<guid>`."""

    def __init__(self, server: ServerUrl) -> None:
        self._client = HttpClient(server)

    @override
    async def read(self, guid: str) -> service.Replied:
        answer = await self._client.ask("GET", path_of("guid", guid))
        code = code_of(answer)
        if code is not Code.OK:
            return _read_refusal(code, answer)
        token = _token_in(answer)
        if len(token) > MAX_JSON_TEXT:
            raise BackEndError("the record is longer than a message may hold")
        return service.with_value(code, token, _FOUND)

    @override
    async def publish(self, guid: str, token: str) -> service.Replied:
        answer = await self._client.ask("PUT", path_of("guid", guid), token.encode())
        code = code_of(answer)
        return service.Replied(code) if code is Code.OK else _read_refusal(code, answer)

    @override
    async def aclose(self) -> None:
        await self._client.aclose()


class GlobalRegistry(service.Service):
    """Relay requests to the global registry."""

    def __init__(self, records: GlobalRecords) -> None:
        self._records = records

    @override
    def plan(self, asked: Asked) -> service.Plan | service.Replied:
        message = asked.message
        match message.type:
            case MessageType.READ:
                guid = _guid(read_body(message, ReadRecord).resource)
                return service.Plan(partial(self._records.read, guid), guid)
            case MessageType.CREATE:
                record = read_body(message, GlobalRecord)
                guid = _guid(record.resource)
                _check_token(record.value)
                return service.Plan(partial(self._records.publish, guid, record.value), guid)
            case verb:
                raise BadMessageError(f"the global registry knows create and read, not {verb}")

    @override
    def forget_runtime(self, runtime: str) -> None:
        """Do nothing: records belong to users, not to sessions."""

    @override
    async def run(self, say: service.Say) -> None:
        await trio.sleep_forever()

    @override
    async def closing(self) -> None:
        await trio.lowlevel.checkpoint()

    @override
    async def aclose(self) -> None:
        await self._records.aclose()


def _guid(text: str) -> str:
    """Read the global address of a user.

    Raises:
        BadMessageError: The text is no such address.
    """
    try:
        guid = canonical(text)
    except BadUrlError as exc:
        raise BadMessageError(f"resource {exc}") from exc
    if scheme_of(guid) != _SCHEME:
        raise BadMessageError(f"resource is no {_SCHEME}:// address")
    return guid


def _check_token(text: str) -> None:
    """Refuse a text that does not have the form of a JSON Web Token.

    Raises:
        BadMessageError: The text is no token.
    """
    parts = _TOKEN.fullmatch(text)
    if parts is None or not all(_is_object(part) for part in parts.groups()[:2]):
        raise BadMessageError("value is no signed JSON Web Token")


def _is_object(part: str) -> bool:
    try:
        return isinstance(orjson.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4))), dict)
    except (binascii.Error, orjson.JSONDecodeError):
        return False


def _token_in(answer: HttpAnswer) -> str:
    """Return the record in an answer: JSON that names it, JSON text, or plain text."""
    try:
        record = answer.json()
    except HttpError:
        record = answer.body.decode("ascii", "replace").strip()
    if isinstance(record, dict):
        named = [record[name] for name in _VALUES if name in record]
        record = named[0] if named else None
    if not isinstance(record, str) or not record or not record.isascii():
        raise BackEndError(f"{answer.server} answered without a record")
    return record


def _read_refusal(code: Code, answer: HttpAnswer) -> service.Replied:
    if code is Code.NOT_FOUND:
        return service.Replied(code, {"description": _MISSING})
    return service.Replied(code, {"description": f"the global registry answered {answer.status}"})
