"""What can be done in a hyperty's name, by itself or by who deployed it."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import final

import trio

from actors.runtime.objects.context import Seat
from actors.runtime.objects.observation import open_observation
from actors.runtime.objects.observed_object import ObservedObject
from actors.runtime.objects.reported_object import ReportedObject
from actors.runtime.objects.reporting import NewReport, open_report, open_taken_over
from actors.runtime.objects.sendable import own, sendable
from specs.addresses.address import scheme_of
from specs.bodies.sync import Observe
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code

__all__ = ["Voice"]


class Voice:
    """Speaks as a hyperty: asks, reports, observes."""

    _seat: Seat

    @property
    def url(self) -> str:
        """The hyperty's address."""
        return self._seat.url

    @final
    async def request(
        self, to: str, value: Json = None, type_: MessageType = MessageType.CREATE
    ) -> Message:
        """Send a request with a value and return its final answer.

        The answer may be a refusal, also one of the routers: 404 nobody there, 408 no
        answer in time, 413 the value is too large, 503 no way there. Its `code` says so;
        what goes wrong on the way is not raised.

        Raises:
            NotJsonError: The value, or a part of it, is no JSON; nothing was sent.
        """
        return await self.ask(to, type_, {"value": value})

    @final
    async def insist(
        self,
        to: str,
        value: Json = None,
        type_: MessageType = MessageType.CREATE,
        *,
        attempts: int = 3,
    ) -> Message:
        """Do as `request`, but have it sent again while nobody answers.

        Each attempt is the same message and has its own time, so that 408 comes the later.
        Who has done what is asked does not do it again, but says again what came of it.

        Args:
            to: As for `request`.
            value: The same.
            type_: The same.
            attempts: How often it is sent at most; `MAX_ATTEMPTS` bounds it.
        """
        return await self._asked(to, type_, {"value": value}, attempts)

    @final
    async def request_each(
        self,
        receivers: Sequence[str],
        value: Json = None,
        type_: MessageType = MessageType.CREATE,
    ) -> dict[str, Message]:
        """Send the same request to each of several, and return the final answer of each.

        Each gets a message of its own. Who refuses, or is not there, says so by the code of
        its answer; the others' answers come all the same.

        Raises:
            NotJsonError: As `request`.
        """
        answers: dict[str, Message] = {}
        with suppress(BadMessageError):
            # What is no JSON is the caller's error, not that of one of the tasks below.
            value = sendable(Message(0, type_, self.url, "", {"value": value})).body["value"]

        async def one(to: str) -> None:
            answers[to] = await self.request(to, value, type_)

        async with trio.open_nursery() as nursery:
            for to in dict.fromkeys(receivers):
                nursery.start_soon(one, to)
        return {to: answers[to] for to in dict.fromkeys(receivers)}

    @final
    async def progress(self, request: Message, value: Json = None) -> None:
        """Say to who has sent a request that it is being worked on; the answer comes later.

        The time in which the answer must come begins anew.

        Raises:
            BadMessageError: It is no request, or the value is too large.
            NotJsonError: As `request`.
        """
        sequence = self._seat.ids.next(self.url)
        body: JsonObject = {"value": value, "sequence": sequence}
        await self._seat.port.post(sendable(reply_to(request, Code.PROGRESS, body)))

    @final
    async def ask(self, to: str, type_: MessageType, body: JsonObject) -> Message:
        """Send a request with any body and return its final answer; otherwise as `request`."""
        return await self._asked(to, type_, body, 1)

    async def _asked(self, to: str, type_: MessageType, body: JsonObject, attempts: int) -> Message:
        """Send a request, at most so often, if it can be sent; return its final answer."""
        message = Message(self._seat.ids.next(self.url), type_, self.url, to, body)
        try:
            message = sendable(message)
        except BadMessageError as exc:
            return refuse(message, exc.code, exc.reason)
        answer = await self._seat.insist(message, attempts)
        # A hyperty's answer is nobody else's; a part of a runtime answers with what it keeps.
        return answer if scheme_of(answer.from_) == "hyperty" else own(answer)

    @final
    def report(  # noqa: PLR0913 - all but the first two are named, and have a default
        self,
        schema: str,
        value: JsonObject,
        *,
        name: str | None = None,
        resources: tuple[str, ...] = (),
        observers: tuple[str, ...] = (),
        definition: Mapping[str, Json] | None = None,
        allow: tuple[str, ...] = (),
        public: bool = False,
        store: bool = False,
    ) -> AbstractAsyncContextManager[ReportedObject]:
        """Report a data object while the returned context is open; then it is deleted.

        Args:
            schema: `comm` (communication), `ctxt` (context), or the catalogue address of
                a data schema whose objects the node of the domain has addresses for.
            value: The first value.
            name: For people.
            resources: What it is about, such as `chat`.
            observers: Hyperties to invite. They may observe from the beginning; whether
                one wants to is asked by `ReportedObject.invite`.
            allow: Hyperties that may observe and read without being asked about; they are
                told nothing. `on_subscribe` decides about all others.
            public: Let everybody observe and read; `ReportedObject.expel` is the exception.
            definition: A JSON Schema that the value must always obey. By default that of
                the catalogue, if it has one at the address of `schema`, or else the one
                that ships; without any, each value is taken.
            store: Keep it in the runtime's store. It then outlives this context, and the
                process: while nobody reports it, those who may observe it get it as it was
                last. Who reports the same schema and name again, as the same hyperty, takes
                it up with its value and version, `ReportedObject.resumed` says so, and
                `value` is not looked at. `ReportedObject.delete` ends it.

        Raises:
            ObjectError: On entering: the object gets no address or no path; 400 it is to be
                stored in a runtime without a store; 409 it is reported already.
            SchemaError: On entering: the value does not obey, or the definition is none.
        """
        wanted = NewReport(
            schema,
            value,
            name,
            resources,
            observers,
            definition,
            allow=allow,
            public=public,
            store=store,
        )
        return open_report(self._seat, wanted)

    @final
    def taken_over(
        self, url: str, *, store: bool = False
    ) -> AbstractAsyncContextManager[ReportedObject]:
        """Report an object that its reporter hands over to this hyperty.

        Waits, on entering, until the hand-over is done, which `on_delegated` agreed to. It
        is then an object like one of `report`, with its observers: on leaving it is deleted,
        or, if it is stored, waits for its reporter.

        Args:
            url: The object's address.
            store: Whether it outlives this runtime's process; it need not have been stored
                by the runtime before. Later `report(store=True)`, with its schema and name,
                goes on with it.

        Raises:
            ObjectError: On entering: 408 it was not handed over within a minute; 400 this
                runtime stores nothing, and it can be taken without.
        """
        return open_taken_over(self._seat, url, store=store)

    @final
    def observe(
        self, url: str, *, p2p: bool | None = None, store: bool = False
    ) -> AbstractAsyncContextManager[ObservedObject]:
        """Observe somebody's data object while the returned context is open.

        It has the object's value from the beginning, and follows each change; where one
        was lost on the way, the whole object is read again as soon as the next one shows it.

        Args:
            url: The object's address.
            p2p: Whether its changes come by a direct link between the two runtimes, past all
                nodes: True: one is set up if it can be, False: never. By default they do
                while there is one. When a link is lost they come by the node again.
            store: Keep what is observed in the runtime's store. The next time the value is
                there at once, as it was last, and `ObservedObject.is_stale` says so until
                the object is read; a reporter that is not there for now is waited for.

        Raises:
            ObjectError: On entering: 400 it is to be stored in a runtime without a store,
                403 its reporter refuses, 404 there is no such object, 408 no answer in
                time, 409 this hyperty observes it already, 413 the store is full.
        """
        return open_observation(self._seat, Observe(url, p2p=p2p, store=store or None))
