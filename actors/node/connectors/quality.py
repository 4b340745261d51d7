"""The quality broker at `domain://qos.<domain>`: network resources (CON-04, M-58, C-60).

A `read` without a `resource` returns the servers of STUN and TURN. A
client of a session (`clientName`) reserves a relay by `create`, reads its state by `read`
and releases it by `delete`, both with its name as `resource`. A repeated request for a held
relay is answered with that relay. A broker over HTTP has this interface, which Protofly defines:

| call | answers |
|---|---|
| `GET /resources` | 200 `{servers: [{urls, username, credential}], ttl}`; 503: none left |
| `PUT /reservations/<name>` and the request | 200 `{turn, username, credential}`; 503: none left |
| `GET /reservations/<name>` | 200, any JSON object; 404 |
| `DELETE /reservations/<name>` | 200, 204 or 404 |

The request is `{cspId, mediaType, clientName}`. The first call is upstream's `getTurnAddr` and
`getTurnCredentials` in one.

A node without such a server can have a list of its own (`ConfiguredServers`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Final

import trio
from typing_extensions import override

from actors.kit.back_ends.ice import IcePlan
from actors.kit.back_ends.requests import Asked, BackEndError, code_of
from actors.kit.http_client import HttpAnswer, HttpClient, ServerUrl, path_of
from actors.kit.ids import wall_clock
from actors.node.connectors import service
from fsm.registry.relay import Reservation, Reservations
from specs.bodies.session import AskQuality, IceServers, QualityClient, QualityRequest, TurnServer
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import MAX_RESERVATIONS
from specs.message import MessageType
from specs.reply_code import Code
from transports.bodies import read_body, read_object, write_body

_NAME_BYTES: Final = 16
_NONE: Final = service.Replied(
    Code.NOT_FOUND, {"description": "nothing is reserved for that client"}
)
_FULL: Final = service.Replied(
    Code.TOO_LARGE, {"description": f"a session reserves at most {MAX_RESERVATIONS} relays"}
)
_NO_RESOURCES: Final = service.Replied(Code.UNAVAILABLE, {"description": "no resources are left"})


class QualityBroker(ABC):
    """Reserve network resources; every method may raise `HttpError` or `BackEndError`."""

    @abstractmethod
    async def reserve(self, name: str, request: QualityRequest) -> TurnServer | None:
        """Reserve a relay under a name that the node chose; None: no resources are left.

        A repeated call with the same name returns the same relay.

        Args:
            name: The name.
            request: The request.

        If cancelled, the relay may be reserved.
        """

    @abstractmethod
    async def resources(self, user: str) -> IceServers | None:
        """Return the servers of STUN and TURN that can be used now; None: there are none.

        Args:
            user: Address of the runtime that uses the servers.

        If cancelled, nothing has changed at the broker.
        """

    @abstractmethod
    async def status(self, name: str) -> JsonObject | None:
        """Return the state of a reservation; None: there is no such reservation.

        If cancelled, nothing has changed at the broker.
        """

    @abstractmethod
    async def release(self, name: str) -> None:
        """Release a reservation. Idempotent.

        If cancelled, the reservation may have been released.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close the client, within bounds.

        If cancelled, the client is closed all the same.
        """


class Quality(service.Service):
    """Relay requests to a quality broker, and release the reservations of ended sessions."""

    def __init__(self, broker: QualityBroker, entropy: Callable[[int], bytes]) -> None:
        self._broker = broker
        self._entropy = entropy
        self._kept = Reservations()
        self._retries = service.RetryWorker("reservations to release", broker.release)

    @override
    def plan(self, asked: Asked) -> service.Plan | service.Replied:
        message, by = asked.message, asked.by
        match message.type:
            case MessageType.CREATE:
                request = read_body(message, AskQuality).value
                client = request.client_name
                return service.Plan(partial(self._reserve, by, request), f"{by} {client}")
            case MessageType.READ if "resource" not in message.body:
                return service.Plan(partial(self._inquire, by), by)
            case MessageType.READ:
                client = read_body(message, QualityClient).resource
                return service.Plan(partial(self._status, by, client), f"{by} {client}")
            case MessageType.DELETE:
                client = read_body(message, QualityClient).resource
                return service.Plan(partial(self._release, by, client), f"{by} {client}")
            case other:
                known = "create, read and delete"
                raise BadMessageError(f"the quality broker knows {known}, not {other}")

    @override
    def forget_runtime(self, runtime: str) -> None:
        for name in self._kept.remove_session(runtime):
            self._retries.schedule(name)

    @override
    async def run(self, say: service.Say) -> None:
        await self._retries.run()

    @override
    async def closing(self) -> None:
        await self._retries.settle()

    @override
    async def aclose(self) -> None:
        await self._broker.aclose()

    async def _reserve(self, by: str, request: QualityRequest) -> service.Replied:
        client, fields = request.client_name, write_body(request)
        reservation = self._kept.find(by, client)
        if reservation is not None and reservation.request == fields:
            return service.with_value(Code.OK, reservation.value)
        self._give_back(by, client)
        if not self._kept.has_room(by):
            return _FULL
        name = self._entropy(_NAME_BYTES).hex()
        is_known = False
        try:
            turn = await self._broker.reserve(name, request)
            is_known = True
        finally:
            # After a failure or a cancellation the broker may have granted the relay.
            if not is_known:
                self._retries.schedule(name)
        if turn is None:
            return _NO_RESOURCES
        value = write_body(turn)
        self._kept.record_grant(by, client, Reservation(name, fields, value))
        return service.with_value(Code.OK, value)

    async def _inquire(self, by: str) -> service.Replied:
        ice = await self._broker.resources(by)
        return _NO_RESOURCES if ice is None else service.with_value(Code.OK, write_body(ice))

    async def _status(self, by: str, client: str) -> service.Replied:
        reservation = self._kept.find(by, client)
        status = None if reservation is None else await self._broker.status(reservation.name)
        if status is None:
            return _NONE
        value: dict[str, Json] = {**status}
        return service.with_value(Code.OK, value)

    async def _release(self, by: str, client: str) -> service.Replied:
        """Release a reservation; if the broker is away, the node tries again later."""
        self._give_back(by, client)
        await trio.lowlevel.checkpoint()
        return service.Replied(Code.OK)

    def _give_back(self, by: str, client: str) -> None:
        name = self._kept.give_back(by, client)
        if name is not None:
            self._retries.schedule(name)


class HttpQualityBroker(QualityBroker):
    """Reserves network quality (QoS) at a broker over HTTP."""

    def __init__(self, server: ServerUrl) -> None:
        self._client = HttpClient(server)

    @override
    async def reserve(self, name: str, request: QualityRequest) -> TurnServer | None:
        answer = await self._client.ask("PUT", _path(name), write_body(request))
        match code_of(answer):
            case Code.OK:
                return _turn(answer)
            case Code.UNAVAILABLE:
                return None
            case _:
                raise _status_error(answer)

    @override
    async def resources(self, user: str) -> IceServers | None:
        answer = await self._client.ask("GET", path_of("resources"))
        match code_of(answer):
            case Code.OK:
                return _servers(answer)
            case Code.UNAVAILABLE:
                return None
            case _:
                raise _status_error(answer)

    @override
    async def status(self, name: str) -> JsonObject | None:
        answer = await self._client.ask("GET", _path(name))
        match code_of(answer):
            case Code.OK:
                return _object(answer)
            case Code.NOT_FOUND:
                return None
            case _:
                raise _status_error(answer)

    @override
    async def release(self, name: str) -> None:
        answer = await self._client.ask("DELETE", _path(name))
        if code_of(answer) not in {Code.OK, Code.NOT_FOUND}:
            raise _status_error(answer)

    @override
    async def aclose(self) -> None:
        await self._client.aclose()


class ConfiguredServers(QualityBroker):
    """Grant the servers that the operator of the node has listed, without another service.

    A reservation is the first server of TURN, with a credential of its own. It is kept by its name
    until it is released; only the server itself limits its use.

    Args:
        plan: The servers.
        clock: Returns the seconds since the epoch.
    """

    def __init__(self, plan: IcePlan, clock: Callable[[], float] = wall_clock) -> None:
        self._plan: Final = plan
        self._clock: Final = clock
        self._granted: dict[str, TurnServer] = {}

    @override
    async def reserve(self, name: str, request: QualityRequest) -> TurnServer | None:
        await trio.lowlevel.checkpoint()
        granted = self._granted.get(name) or self._plan.relay(name, self._clock())
        if granted is not None:
            self._granted[name] = granted
        return granted

    @override
    async def resources(self, user: str) -> IceServers | None:
        await trio.lowlevel.checkpoint()
        return self._plan.servers_for(user, self._clock())

    @override
    async def status(self, name: str) -> JsonObject | None:
        await trio.lowlevel.checkpoint()
        granted = self._granted.get(name)
        return None if granted is None else {"turn": granted.turn, "username": granted.username}

    @override
    async def release(self, name: str) -> None:
        await trio.lowlevel.checkpoint()
        self._granted.pop(name, None)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


def _path(name: str) -> str:
    return path_of("reservations", name)


def _status_error(answer: HttpAnswer) -> BackEndError:
    return BackEndError(f"{answer.server} answered with status {answer.status}")


def _object(answer: HttpAnswer) -> JsonObject:
    fields: Json = answer.json()
    if not isinstance(fields, dict):
        raise BackEndError(f"{answer.server} answered with JSON that is no object")
    return fields


def _servers(answer: HttpAnswer) -> IceServers:
    try:
        return read_object(_object(answer), IceServers, "the answer")
    except BadMessageError as exc:
        why = f"{answer.server} names servers in another form: {exc.reason}"
        raise BackEndError(why) from exc


def _turn(answer: HttpAnswer) -> TurnServer:
    fields = _object(answer)
    turn, username, credential = (fields.get(each) for each in ("turn", "username", "credential"))
    if not (isinstance(turn, str) and isinstance(username, str) and isinstance(credential, str)):
        raise BackEndError(f"{answer.server} granted a relay without its credentials")
    return TurnServer(turn, username, credential)
