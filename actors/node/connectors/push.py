"""Calls to runtimes that sleep, by Web Push (PFY-09): `domain://msg-node.<domain>/push`.

| verb | from | effect |
|---|---|---|
| `read` | anybody | the key that the device's push service has to know |
| `create` | a runtime | registers its device; the value is a `PushSubscription` |
| `delete` | a runtime | removes its device |
| `execute` | anybody whom policy permits | wakes the devices of the runtime or user `resource` |

A call names the caller; the woken runtime then connects to the domain of the caller.
Push services are named by the operator, or have public addresses.
"""

import sqlite3
import ssl
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final, final
from urllib.parse import urlsplit

import attrs
import orjson
import trio
from typing_extensions import override

from actors.keys.push import (
    PushError,
    encrypt,
    open_push_key,
    public_point,
    read_keys,
    vapid,
)
from actors.keys.signing import SigningKey
from actors.kit import http_client
from actors.kit.arguments import PathInput, as_path
from actors.kit.back_ends.requests import Asked, BackEndError
from actors.kit.database import DatabaseFile, DatabaseForm
from actors.kit.log import get_logger
from actors.node.connectors.service import Plan, Replied, Say, Service, with_value
from fsm.registry.records import Device, DeviceTable
from specs.addresses.address import RUNTIME_SCHEME, is_node, scheme_of
from specs.bodies.push import Call, PushKeys, PushSubscription, RegisterDevice, Wake
from specs.errors import BadMessageError
from specs.identity import VouchedBy
from specs.limits.node import PUSH_BYTES, PUSH_ENDPOINT_CHARS, PUSH_PATIENCE, PUSH_TTL
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body, write_body

_log = get_logger("actors.node")

_ANSWER_BYTES: Final = 4096
_GONE: Final = frozenset({404, 410})
_BUSY: Final = frozenset({429, 503})
_TAKEN: Final = frozenset({200, 201, 202, 204})
_RETRY: Final = 60.0
"""Seconds after which a caller may try again, if the push service names no time."""

_VERSION: Final = 1
_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS device (
        runtime  TEXT PRIMARY KEY,
        user     TEXT,
        endpoint TEXT NOT NULL,
        p256dh   TEXT NOT NULL,
        auth     TEXT NOT NULL,
        until    REAL NOT NULL
    ) WITHOUT ROWID;
"""
_FORM: Final = DatabaseForm(frozenset({"device"}), _VERSION)


def _key(value: SigningKey | PathInput) -> SigningKey:
    if isinstance(value, SigningKey):
        return value
    return open_push_key(as_path(value, "key"))


def _set(values: Iterable[str]) -> frozenset[str]:
    return frozenset(values)


@final
@attrs.frozen(kw_only=True)
class PushConfig:
    """Configuration of the calls to devices.

    Attributes:
        key: Key for ES256 that proves the identity of the node to push services, or its file,
            which is made if it is missing.
        contact: `mailto:` or `https:` URL of the operator, which push services demand.
        file: SQLite file of the devices; None: devices are forgotten when the node ends.
        services: Origins of the push services that may be used, such as
            `https://push.example`; empty: all with a public address, by https.

    Raises:
        TypeError: The key is neither a key nor a path.
        KeyFileError: The file of the key cannot be read or made, or holds no such key.
    """

    key: SigningKey = attrs.field(converter=_key)
    contact: str
    file: Path | None = None
    services: frozenset[str] = attrs.field(default=(), converter=_set)


class DeviceFile:
    """Store the devices on disk; every method blocks.

    Args:
        path: The file; None: nothing is stored.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else DatabaseFile(path, _FORM)

    def load(self) -> Iterable[Device]:
        """Return the stored devices.

        Raises:
            BackEndError: The file cannot be used.
        """
        if self._file is None:
            return ()
        try:
            self._file.lock()
            connection = self._file.connection()
            with connection:
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                connection.executescript(_SCHEMA)
            rows = connection.execute(
                "SELECT runtime, user, endpoint, p256dh, auth, until FROM device"
            )
            names = ("runtime", "user", "endpoint", "p256dh", "auth", "until")
            return [Device(**dict(zip(names, row, strict=True))) for row in rows]
        except (sqlite3.Error, OSError) as exc:
            raise BackEndError(f"the file of devices cannot be used: {exc}") from exc

    def change(self, kept: Device | None, gone: Iterable[str]) -> None:
        """Store a device, and delete those of other runtimes.

        Args:
            kept: The device to store; None: none.
            gone: Runtimes whose devices are deleted.

        Raises:
            BackEndError: The file cannot be written.
        """
        if self._file is None:
            return
        try:
            connection = self._file.connection()
            with connection:
                connection.executemany(
                    "DELETE FROM device WHERE runtime = ?", [(each,) for each in gone]
                )
                if kept is not None:
                    connection.execute(
                        "INSERT OR REPLACE INTO device VALUES (?, ?, ?, ?, ?, ?)",
                        attrs.astuple(kept),
                    )
        except (sqlite3.Error, OSError) as exc:
            self._file.disconnect()
            raise BackEndError(f"the file of devices cannot be written: {exc}") from exc

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._file is not None:
            self._file.close()


@attrs.frozen
class _Pushed:
    """Outcome of a call to one device; `pause`: seconds after which another attempt may succeed."""

    is_taken: bool = False
    pause: float | None = None
    why: str = ""


class Push(Service):
    """Register devices and wake them.

    Args:
        config: Configuration of the calls.
        clock: Returns the seconds since the epoch.
    """

    def __init__(self, config: PushConfig, clock: Callable[[], float]) -> None:
        self._config: Final = config
        self._clock: Final = clock
        self._disk = trio.Lock()
        # Reading the certificate authorities takes long.
        self._tls: Final = ssl.create_default_context()
        self._file = DeviceFile(config.file)
        self._table: DeviceTable | None = None

    @override
    def plan(self, asked: Asked) -> Plan | Replied:
        message = asked.message
        match message.type:
            case MessageType.READ:
                return with_value(Code.OK, {"applicationServerKey": public_point(self._config.key)})
            case MessageType.CREATE:
                subscription = read_body(message, RegisterDevice).value
                self._origin(subscription)
                _check_keys(subscription)
                return Plan(partial(self._register, _owner(asked), subscription), asked.by)
            case MessageType.DELETE:
                return Plan(partial(self._forget, _owner(asked).runtime), asked.by)
            case MessageType.EXECUTE:
                return self._call(asked, read_body(message, Wake))
            case other:
                known = "read, create, delete and execute"
                raise BadMessageError(f"the push manager knows {known}, not {other}")

    @override
    def forget_runtime(self, runtime: str) -> None:
        """Do nothing: a runtime without a session is what a call wakes."""

    @override
    async def run(self, say: Say) -> None:
        await self._devices()
        await trio.sleep_forever()

    @override
    async def closing(self) -> None:
        await trio.lowlevel.checkpoint()

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self._file.close()

    # ---- devices

    async def _devices(self) -> DeviceTable:
        async with self._disk:
            if self._table is None:
                self._table = DeviceTable(await trio.to_thread.run_sync(self._file.load))
        return self._table

    async def _store(self, kept: Device | None, gone: Iterable[str]) -> None:
        async with self._disk:
            await trio.to_thread.run_sync(self._file.change, kept, gone)

    async def _register(self, owner: "_Owner", subscription: PushSubscription) -> Replied:
        devices, now = await self._devices(), self._clock()
        device = Device(
            runtime=owner.runtime,
            user=owner.user,
            endpoint=subscription.endpoint,
            p256dh=subscription.keys.p256dh,
            auth=subscription.keys.auth,
            until=now,
        )
        gone = devices.keep(device, now)
        if gone is None:
            why = "the node can wake no more devices"
            return Replied(Code.TOO_LARGE, {"description": why})
        await self._store(devices.device_of(owner.runtime), gone)
        return Replied(Code.OK)

    async def _forget(self, runtime: str) -> Replied:
        if not (await self._devices()).forget(runtime):
            return Replied(Code.NOT_FOUND, {"description": "no device is registered"})
        await self._store(None, (runtime,))
        return Replied(Code.OK)

    # ---- calls

    def _call(self, asked: Asked, wake: Wake) -> Plan | Replied:
        text = orjson.dumps(write_body(_call_of(asked.message, wake)))
        if len(text) > PUSH_BYTES:
            raise BadMessageError(f"a call has at most {PUSH_BYTES} bytes", Code.TOO_LARGE)
        if scheme_of(wake.resource) not in {"user", RUNTIME_SCHEME}:
            raise BadMessageError(f"{wake.resource} is neither a user nor a runtime")
        return Plan(partial(self._wake, asked.by, wake.resource, text))

    async def _wake(self, caller: str, address: str, text: bytes) -> Replied:
        devices, now = await self._devices(), self._clock()
        reachable = devices.reached_by(address, now)
        if not devices.may_call(caller, now):
            return _busy(_RETRY, f"{caller} calls too often")
        if not reachable:
            return Replied(Code.NOT_FOUND, {"description": f"no device of {address} is registered"})
        results: list[_Pushed] = []

        async def push(device: Device) -> None:
            results.append(await self._push(device, text))

        async with trio.open_nursery() as nursery:
            for device in reachable:
                if devices.may_reach(device, caller, now):
                    nursery.start_soon(push, device)
                else:
                    results.append(_Pushed(pause=_RETRY, why=f"{address} is called too often"))
        return _outcome(address, results)

    async def _push(self, device: Device, text: bytes) -> _Pushed:
        subscription = PushSubscription(device.endpoint, PushKeys(device.p256dh, device.auth))
        try:
            origin, path = self._origin(subscription)
            content = encrypt(subscription, text)
        except (BadMessageError, PushError) as exc:
            return _Pushed(why=str(exc))
        server = http_client.ServerUrl.read(origin)
        egress = http_client.dial_anywhere if self._config.services else http_client.dial_public
        client = http_client.HttpClient(
            server, _ANSWER_BYTES, http_client.sockets(egress), tls=self._tls
        )
        why = "it does not answer"
        try:
            with trio.move_on_after(PUSH_PATIENCE):
                return await self._post(client, origin, path, content, device.runtime)
        except http_client.HttpError as exc:
            why = exc.reason
        finally:
            await client.aclose()
        _log.warning("push service cannot be asked", service=origin, why=why)
        return _Pushed(pause=_RETRY, why="the push service of a device cannot be asked")

    async def _post(
        self, client: http_client.HttpClient, origin: str, path: str, content: bytes, runtime: str
    ) -> _Pushed:
        now = self._clock()
        headers = {
            "authorization": vapid(self._config.key, origin, self._config.contact, now),
            "content-encoding": "aes128gcm",
            "ttl": str(PUSH_TTL),
            "urgency": "high",
        }
        status = (await client.rest(await client.open("POST", path, content, headers))).status
        if status in _GONE:
            await self._forget(runtime)
        elif status in _BUSY:
            return _Pushed(pause=_RETRY, why="the push service is busy")
        elif status not in _TAKEN:
            _log.warning("push service refused a call", service=origin, status=status)
            return _Pushed(why=f"the push service answered {status}")
        return _Pushed(is_taken=status in _TAKEN)

    def _origin(self, subscription: PushSubscription) -> tuple[str, str]:
        """Return the origin and the rest of an endpoint, if the node may use it.

        Raises:
            BadMessageError: The endpoint is invalid; 403: the operator does not permit the service.
        """
        endpoint = subscription.endpoint
        try:
            parts = urlsplit(endpoint)
            server = http_client.ServerUrl.read(f"{parts.scheme}://{parts.netloc}")
        except (http_client.HttpUrlError, ValueError) as exc:
            raise BadMessageError("the endpoint of a device is no URL of a push service") from exc
        if len(endpoint) > PUSH_ENDPOINT_CHARS or parts.fragment or not endpoint.isascii():
            raise BadMessageError("the endpoint of a device is no URL of a push service")
        origin = f"{server.scheme}://{server.authority}"
        permitted = self._config.services
        if (permitted and origin not in permitted) or (not permitted and server.scheme != "https"):
            raise BadMessageError(f"{origin} is no push service of this node", Code.FORBIDDEN)
        return origin, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


@attrs.frozen
class _Owner:
    runtime: str
    user: str | None


def _owner(asked: Asked) -> _Owner:
    """Return the runtime whose device a message is about.

    Raises:
        BadMessageError: 403: the message came from the node of another domain.
    """
    if is_node(asked.by):
        raise BadMessageError("a device is registered at its own domain", Code.FORBIDDEN)
    identity = asked.message.identity
    return _Owner(asked.by, None if identity is None else identity.user)


def _check_keys(subscription: PushSubscription) -> None:
    """Refuse keys that cannot encrypt.

    Raises:
        BadMessageError: The keys are invalid.
    """
    try:
        read_keys(subscription)
    except ValueError as exc:
        raise BadMessageError("the keys of a device are no keys for Web Push") from exc


def _call_of(message: Message, wake: Wake) -> Call:
    identity = message.identity
    return Call(
        to=wake.resource,
        from_=message.from_,
        vouched_by=(VouchedBy.NONE if identity is None else identity.vouched_by).value,
        user=None if identity is None else identity.user,
        value=wake.value,
    )


def _outcome(address: str, results: list[_Pushed]) -> Replied:
    taken = sum(result.is_taken for result in results)
    if taken:
        return with_value(Code.OK, {"devices": taken})
    refused = [result for result in results if result.why]
    if not refused:
        return Replied(Code.NOT_FOUND, {"description": f"no device of {address} is left"})
    pauses = [each.pause for each in refused if each.pause is not None]
    if not pauses:
        return Replied(Code.BAD_BACKEND, {"description": refused[0].why})
    return _busy(min(pauses), refused[0].why)


def _busy(pause: float, why: str) -> Replied:
    return Replied(Code.UNAVAILABLE, {"description": why, "retryAfter": pause})
