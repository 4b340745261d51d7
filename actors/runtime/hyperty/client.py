"""Operations in the name of a hyperty, for the hyperty and for the program that deployed it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import NoneType
from typing import Final, Unpack, final

import trio

from actors.kit.arguments import (
    check_answer_within,
    check_attribute,
    check_text,
    check_texts,
    check_type,
)
from actors.kit.errors import ActorStoppedError
from actors.runtime.bus.mini_bus import Progress
from actors.runtime.discovery.search import RecordSearch, Watching
from actors.runtime.hyperty import bodies
from actors.runtime.hyperty.open_request import OpenRequest
from actors.runtime.hyperty.transfer import fetch_answer, send_ahead
from actors.runtime.hyperty.typed import Sendable
from actors.runtime.objects.observation import ObservedObject, open_observation
from actors.runtime.objects.participant import ObjectError, Participant
from actors.runtime.objects.reported_object import NewReport, ReportedObject, open_report
from fsm.registry.discovery import Criteria
from specs.addresses.address import canonical, inbox_of, scheme_of
from specs.bodies.chunk import CHUNKS
from specs.bodies.object import ChildWindow, Observe, ReadAttribute
from specs.errors import BadMessageError
from specs.jsonvalue import Json, JsonInput, JsonObject, freeze
from specs.limits.bus import MAX_ATTEMPTS
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import (
    ANSWER_WITHIN,
    DURABLE,
    GIVEN_UP,
    Message,
    MessageType,
    is_durable,
    reason_in,
    refuse,
    reply_to,
)
from specs.reply_code import LAST_SUCCESS, Code
from specs.spans import TRACEPARENT
from transports.sockets import open_background


def _body(
    value: Sendable, path: str, *, durable: bool = False, traceparent: str | None = None
) -> Mapping[str, Sendable]:
    """Return the body of a request."""
    check_text(path, "path")
    body: dict[str, Sendable] = {"value": value, "resource": path} if path else {"value": value}
    if durable:
        body[DURABLE] = True
    if traceparent is not None:
        check_text(traceparent, "traceparent")
        body[TRACEPARENT] = traceparent
    return body


_REQUESTS: Final = {verb.value: verb for verb in MessageType if verb is not MessageType.RESPONSE}


def _verb(text: str) -> MessageType:
    """Return the verb of a request.

    Raises:
        TypeError: `text` is no text.
        ValueError: `text` is no verb of requests.
    """
    check_text(text, "type_")
    verb = _REQUESTS.get(text)
    if verb is None:
        raise ValueError(f"type_ must be one of {', '.join(_REQUESTS)}, not {text!r}")
    return verb


class HypertyClient:
    """Sends requests, reports data objects and observes them in the name of a hyperty."""

    _participant: Participant

    @property
    def url(self) -> str:
        """Address of the hyperty, such as `hyperty://a.example/1`."""
        return self._participant.url

    @final
    async def request(
        self,
        to: str,
        value: Sendable = None,
        type_: str = MessageType.CREATE,
        *,
        path: str = "",
        durable: bool = False,
        answer_within: float | None = None,
        traceparent: str | None = None,
    ) -> Message:
        """Send a request with a value and return its final answer.

        A refusal is returned, not raised, also that of a router; `code` of the answer says
        which: 400 `to` is not an address, 401 the hyperty is undeployed, 404 no such receiver,
        408 no answer in `REPLY_TIMEOUT` seconds, 413 the value is too large, 503 the receiver
        cannot be reached or a queue is full; `retryAfter` of its body then says after how many
        seconds another attempt may succeed.

        While `OPEN_REQUESTS` requests of the hyperty to the same receiver are open, or
        `PEER_WAITING` of its runtime, and while its node does not take messages as fast as they
        come, the call waits. The time of the request begins afterwards.

        A value over `BODY_BYTES` travels in chunks; its answer is awaited from the last one on, and
        the receiver gets it whole.

        A durable request is answered 202 as soon as the domain of the receiver keeps it, also while
        its runtime is away, until its session is over (404). The receiver gets it once, and its own
        answer goes nowhere. 503: it is not kept, or not known to be. A receiver in the same runtime
        answers itself. A durable value over `BODY_BYTES` is refused (413).

        Args:
            to: Address of the receiver.
            value: JSON value of the request, or an instance of an attrs class; it becomes `value`
                of the body.
            type_: Verb of the request, such as `MessageType.UPDATE` or "update".
            path: What the request is about, as a handler of the receiver names it (`handles`).
            durable: Whether the domain keeps the request until the receiver has answered it.
            answer_within: Seconds for which the answer is awaited, 600 at most; then it is 408, and
                the handler of the receiver is cancelled. A receiver of another implementation may
                not know this; the wait then ends as without. None: `REPLY_TIMEOUT` after the
                request or the last provisional answer.
            traceparent: The span that the request belongs to, as W3C Trace Context writes it; the
                receiver finds it as `traceparent` of the body.

        Returns:
            The final answer; its body has the `value` that the receiver returned.

        If cancelled, a message that the bus has not taken yet is not sent. The handler of one that
        was sent is cancelled, unless it is shielded, as after a 408; its answer is dropped. A full
        bus may delay the cancellation for `GOODBYE_TIMEOUT` seconds.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: `type_` is no verb of requests; or `answer_within` is out of range, or
                given with `durable`, as a durable request is answered at once.
            NotJsonError: The value, or a part of it, is not JSON; nothing was sent.
            ActorStoppedError: The runtime has closed.
        """
        body = _body(value, path, durable=durable, traceparent=traceparent)
        if answer_within is None:
            return await self._ask(to, type_, body, 1)
        if durable:
            raise ValueError("a durable request is answered at once, without answer_within")
        return await self._ask_in_time(to, type_, body, answer_within)

    @final
    @asynccontextmanager
    async def open_request(
        self,
        to: str,
        value: Sendable = None,
        type_: str = MessageType.CREATE,
        *,
        path: str = "",
        answer_within: float | None = None,
    ) -> AsyncIterator[OpenRequest]:
        """Send a request, and read its answers as they come, also those by `progress`.

        `async with` sends the request, and `async for` yields the answers. The request is given up
        if the block is left before the final answer.

        Args:
            to: As of `request`.
            value: As of `request`.
            type_: As of `request`.
            path: As of `request`.
            answer_within: As of `request`.

        Yields:
            The request.

        If cancelled, the request is given up, as of `request`.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: As of `request`.
            NotJsonError: The value, or a part of it, is not JSON; nothing was sent.
            ActorStoppedError: The runtime has closed.
        """
        body, answers = _body(value, path), OpenRequest()

        async def ask() -> None:
            note = answers.note
            answers.end(
                await self._ask(to, type_, body, 1, note)
                if answer_within is None
                else await self._ask_in_time(to, type_, body, answer_within, note)
            )

        async with open_background() as nursery:
            nursery.start_soon(ask)
            try:
                yield answers
            finally:
                answers.close()

    async def _ask_in_time(
        self,
        to: str,
        type_: str,
        body: Mapping[str, Sendable],
        answer_within: float,
        progress: Progress | None = None,
    ) -> Message:
        """Send a request, and return its answer, or 408 after the time that it has."""
        check_answer_within(answer_within)
        with trio.move_on_after(answer_within):
            return await self._ask(to, type_, {**body, ANSWER_WITHIN: answer_within}, 1, progress)
        why = f"no answer in {answer_within:g} s"
        late = bodies.as_body({"code": int(Code.TIMEOUT), "description": why})
        number = self._participant.ids.next(self.url)
        return Message(number, MessageType.RESPONSE, to, self.url, late)

    @final
    async def insist(
        self,
        to: str,
        value: Sendable = None,
        type_: str = MessageType.CREATE,
        *,
        attempts: int = 3,
        path: str = "",
    ) -> Message:
        """Send a request like `request`, and send it again while no answer comes.

        All attempts are the same message with the same id, and each attempt waits
        `REPLY_TIMEOUT` seconds. A receiver that has handled the request does not handle it
        again, but repeats its answer. A hyperty in a sandbox process sends once.

        Args:
            to: Address of the receiver.
            value: JSON value of the request.
            type_: Verb of the request.
            attempts: How often the message is sent at most; from 1 to `MAX_ATTEMPTS`, other
                numbers are moved into that range.
            path: As of `request`.

        Returns:
            The final answer, as of `request`.

        If cancelled, the request is given up, as of `request`.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: `type_` is no verb of requests.
            NotJsonError: The value, or a part of it, is not JSON; nothing was sent.
            ActorStoppedError: The runtime has closed.
        """
        return await self._ask(to, type_, _body(value, path), max(1, min(attempts, MAX_ATTEMPTS)))

    @final
    async def request_each(
        self,
        receivers: Sequence[str],
        value: Sendable = None,
        type_: str = MessageType.CREATE,
        *,
        path: str = "",
    ) -> dict[str, Message]:
        """Send the same request to several receivers, and return the final answer of each.

        Each receiver gets a message of its own; a refusal of one does not affect the others.

        Args:
            receivers: Addresses of the receivers; a repeated one is asked once.
            value: JSON value of the requests.
            type_: Verb of the requests.
            path: As of `request`.

        Returns:
            The final answers, by receiver, in the order of `receivers`.

        If cancelled, requests may have been sent to some or all receivers; each is given up, as of
        `request`.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: `type_` is no verb of requests.
            NotJsonError: The value, or a part of it, is not JSON; nothing was sent.
            ExceptionGroup: Of ActorStoppedError: the runtime has closed.
        """
        check_texts(receivers, "receivers")
        answers: dict[str, Message] = {}
        with suppress(BadMessageError):
            # A value that is no JSON is raised here, and not in one of the tasks below.
            draft = Message(0, _verb(type_), self.url, "", bodies.as_body({"value": value}))
            value = bodies.copy_message(draft).body["value"]

        async def request_one(to: str) -> None:
            answers[to] = await self.request(to, value, type_, path=path)

        async with trio.open_nursery() as nursery:
            for to in dict.fromkeys(receivers):
                nursery.start_soon(request_one, to)
        return {to: answers[to] for to in dict.fromkeys(receivers)}

    @final
    async def send(self, to: str, value: Sendable = None) -> None:
        """Send an event to a hyperty, whose `on_event` gets it; there is no answer.

        The call waits until the runtime has taken the event. One that gets no further is counted by
        reason where it is dropped (`drops` of runtimes and nodes). Events to one hyperty keep their
        order among themselves, not with requests. Delivery is at most once.

        Args:
            to: Address of the receiver.
            value: JSON value of the event, or an instance of an attrs class.

        If cancelled, the event may have been sent.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: `to` is not the address of a hyperty.
            BadUrlError: `to` is no address.
            NotJsonError: The value, or a part of it, is not JSON; nothing was sent.
            BadMessageError: 413: the value is too large; nothing was sent.
            ActorStoppedError: The runtime has closed.
        """
        check_text(to, "to")
        address = canonical(to)
        if scheme_of(address) != "hyperty":
            raise ValueError(f"events are sent to hyperties, and {address} is none")
        url = self._participant.url
        number, body = self._participant.ids.next(url), bodies.as_body({"value": value})
        event = Message(number, MessageType.CREATE, url, inbox_of(address), body)
        await self._participant.port.post(bodies.copy_message(event))

    @final
    async def progress(self, request: Message, value: Sendable = None) -> None:
        """Send a provisional answer to a request; the final answer comes later.

        The sender then waits for the final answer for `REPLY_TIMEOUT` seconds from now.

        Args:
            request: The request.
            value: JSON value of this provisional answer.

        If cancelled, the provisional answer is not sent.

        Raises:
            TypeError: An argument is of a wrong kind.
            BadMessageError: `request` is not a request, or the value is too large.
            TypeError: An argument is of a wrong kind.
            NotJsonError: The value, or a part of it, is not JSON; nothing was sent.
            ActorStoppedError: The runtime has closed.
        """
        check_type(request, (Message,), "request")
        sequence = self._participant.ids.next(self.url)
        body = bodies.as_body({"value": value, "sequence": sequence})
        answer = bodies.copy_message(reply_to(request, Code.PROGRESS, body))
        await self._participant.port.post(answer)

    @final
    async def ask(self, to: str, type_: str, body: Mapping[str, Sendable]) -> Message:
        """Send a request with any body and return its final answer.

        Args:
            to: Address of the receiver.
            type_: Verb of the request.
            body: Body of the request.

        Returns:
            The final answer, as of `request`.

        If cancelled, the request is given up, as of `request`.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: `type_` is no verb of requests.
            NotJsonError: The body, or a part of it, is not JSON; nothing was sent.
            ActorStoppedError: The runtime has closed.
        """
        check_type(body, (Mapping,), "body")
        return await self._ask(to, type_, body, 1)

    async def _ask(
        self,
        to: str,
        type_: str,
        body: Mapping[str, Sendable],
        attempts: int,
        progress: Progress | None = None,
    ) -> Message:
        """Send a request, in chunks if need be, at most `attempts` times; return the answer."""
        check_text(to, "to")
        verb = _verb(type_)
        participant = self._participant
        answer: Message | None = None
        # The id is made after the wait: the ids of one sender rise (I-T7).
        async with participant.window(to):
            head = participant.ids.next(participant.url), verb, participant.url, to
            try:
                message = bodies.compose(head, body, participant.identity)
            except BadMessageError as exc:
                message = Message(*head, bodies.as_body(body))
                # The exception concerns the copy of the body.
                if exc.code != Code.TOO_LARGE or is_durable(message):
                    # A checkpoint, so that a loop of such calls lets other tasks run.
                    await trio.lowlevel.checkpoint()
                    return refuse(message, exc.code, exc.reason)
            else:
                try:
                    answer = await participant.port.insist(message, attempts, progress)
                except trio.Cancelled:
                    with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                        await self._give_up(message)
                    raise
                # The bus has answered: the receiver is perhaps still at work.
                if answer.body["code"] == Code.TIMEOUT and answer.identity is None:
                    await self._give_up(message)
        if answer is None:
            answer = await self._ask_in_chunks(message, attempts, progress)
        if CHUNKS in answer.body:
            return await fetch_answer(self._participant, message, answer)
        # A part of a runtime may answer with an object that it keeps, so its answer is copied.
        return answer if scheme_of(answer.from_) == "hyperty" else bodies.own_copy(answer)

    async def _ask_in_chunks(
        self, message: Message, attempts: int, progress: Progress | None
    ) -> Message:
        """Send a request whose body is too large for a message; return the answer."""
        participant = self._participant
        try:
            body = bodies.large_body(message, message.type, participant.runtime.transfers.limit)
            async with (
                send_ahead(participant, message, body) as short_body,
                participant.window(message.to),
            ):
                # The id is made after those of the chunks: ids of one sender rise.
                number = participant.ids.next(self.url)
                sent = Message(number, message.type, self.url, message.to, short_body)
                try:
                    answer = await participant.port.insist(sent, attempts, progress)
                except trio.Cancelled:
                    with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                        await self._give_up(sent)
                    raise
                if answer.code == Code.TIMEOUT and answer.identity is None:
                    await self._give_up(sent)
                return answer
        except BadMessageError as exc:
            return refuse(message, exc.code, exc.reason)

    async def _give_up(self, request: Message) -> None:
        """Tell the receiver of a request that nobody waits for its answer.

        Only hyperties are told, as other receivers have no handlers of an application. The domain
        keeps a durable request, whoever waits.
        """
        if scheme_of(request.to) != "hyperty" or is_durable(request):
            return
        participant = self._participant
        body: JsonObject = {GIVEN_UP: request.id}
        with suppress(ActorStoppedError):
            number = participant.ids.next(self.url)
            to = inbox_of(request.to)
            event = Message(number, MessageType.CREATE, self.url, to, body, participant.identity)
            await participant.port.post(event)

    @final
    def discover(
        self, *, domain: str | None = None, limit: int | None = None, **criteria: Unpack[Criteria]
    ) -> RecordSearch:
        """Search a domain registry for hyperties or data objects, such as those of a user.

        `await` returns the first 1024 entries; `async for` reads page after page, and no further
        page than needed. Newest entries come first. If none is live, those are found that are
        registered and away.

        Args:
            domain: Domain whose registry is searched; None: the own one.
            limit: How many entries a page has at most; None: as many as the registry likes.
            criteria: What all of the entries have, at least one of `user`, `name`, `schema`,
                `resources` and `reporter`; see `Criteria`. `scheme` is that of their addresses,
                `hyperty` if it is not given.

        Returns:
            The search; its use raises `SearchError` with the code of a registry that refuses.

        Raises:
            TypeError: A criterion is of a wrong kind, or unknown, or none is given.
            ValueError: A criterion is empty.
            BadUrlError: User, reporter or domain is no address.
            BadMessageError: The limit is not in 1..256.
        """
        return self._participant.discoverer.discover(domain=domain, limit=limit, **criteria)

    @final
    def watch(self, *, domain: str | None = None, **criteria: Unpack[Criteria]) -> Watching:
        """Follow what `discover` finds: entries that appear, change, or vanish.

        `async for change in hyperty.watch(name="greeter"):` begins with all entries that are
        there. Status changes come at once, new entries within five seconds. Left by `async with`
        or `aclose`, or abandoned, the iterator ends its subscriptions.

        Args:
            domain: Domain whose registry is searched; None: the own one.
            criteria: What all of the entries have, as for `discover`.

        Returns:
            The changes; their iteration raises `SearchError` if the registry refuses the search.

        Raises:
            TypeError: A criterion is of a wrong kind, or unknown, or none is given.
            ValueError: A criterion is empty.
            BadUrlError: User, reporter or domain is no address.
        """
        return self._participant.discoverer.watch(domain=domain, **criteria)

    @final
    def report(  # noqa: PLR0913 - all but the first two are named, and have a default
        self,
        schema: str,
        value: Mapping[str, JsonInput],
        *,
        name: str | None = None,
        resources: tuple[str, ...] = (),
        observers: tuple[str, ...] = (),
        definition: Mapping[str, JsonInput] | None = None,
        allow: tuple[str, ...] = (),
        public: bool = False,
        store: bool = False,
        children: ChildWindow | None = None,
    ) -> AbstractAsyncContextManager[ReportedObject]:
        """Report a data object while the returned context is open.

        When the context is left, writes that wait are published, for at most `GOODBYE_TIMEOUT`
        seconds and without their errors; then the object is deleted, or left to its store.

        Args:
            schema: `comm` (communication), `ctxt` (context), or the catalogue address of a data
                schema for whose objects the node of the domain allocates addresses.
            value: The first value.
            name: Name of the object, for people.
            resources: What the object is about, such as `chat`; others search by it.
            observers: Addresses of hyperties that are invited. They may observe from the
                beginning; `ReportedObject.invite` also returns whether one accepts.
            definition: JSON Schema that each value must obey. None: that of the catalogue, if
                it has one at the address of `schema`, else the one that Protofly ships for it;
                without any, each JSON object is accepted.
            allow: Addresses of hyperties that may observe and read; they are not notified.
                `Hyperty.on_subscribe` decides about all others.
            public: Let every hyperty observe and read, except those that are expelled.
            store: Keep the object in the store of the runtime, beyond this context and this
                process. While it is not reported, permitted observers get its last value.
                The same hyperty resumes it by reporting the same schema and name: it then has
                the stored value and version, `value` is ignored, and `ReportedObject.resumed`
                is True. `ReportedObject.delete` ends it.
            children: The children that the object keeps: the oldest ones leave for newer ones.
                None: it keeps all, and refuses further ones at its limits. A resumed object has
                the window that it was created with.

        Returns:
            An async context manager that yields the reported object.

        If cancelled on entering, an object that is created within `GOODBYE_TIMEOUT` seconds is
        deleted at once, and one that is created later with the hyperty.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: `schema` is empty.
            BadMessageError: On entering: one of `observers` or `allow` is not an address.
            ObjectError: On entering. 400: `store` in a runtime without a store, or half a
                character in `name`, `resources` or `schema`; 401: the
                hyperty is undeployed; 409: the object is reported already; 410: the runtime has
                closed; 413: name and resources are too large; 503: the object gets no address or
                no path.
            SchemaError: On entering: the value does not obey the schema, or no message can hold
                it; or `definition` is not a JSON Schema.
        """
        check_text(schema, "schema")
        if not schema:
            raise ValueError("schema is empty; name a scheme such as comm, or a data schema")
        check_type(value, (Mapping,), "value")
        check_type(name, (str, NoneType), "name")
        for texts, word in ((resources, "resources"), (observers, "observers"), (allow, "allow")):
            check_texts(texts, word)
        check_type(children, (ChildWindow, NoneType), "children")
        new = NewReport(
            schema,
            value,
            name,
            resources,
            observers,
            definition,
            allow=allow,
            public=public,
            store=store,
            children=children,
        )
        return open_report(self._participant, new)

    @final
    async def read(self, url: str, attribute: str | None = None) -> Json:
        """Read the value of a data object, or one attribute of the value, without observing.

        The reporter and its permitted observers may read.

        Args:
            url: Address of the object.
            attribute: Dotted path in the value, such as `items.0.title`; None: the whole value.

        Returns:
            The value, immutable on every level; None: the attribute is null.

        If cancelled, nothing has changed.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: The attribute is empty.
            ObjectError: 401: the hyperty may not read it, or is undeployed; 404: there is no such
                object, or it lacks the attribute; 408: no answer in time; 410: the runtime has
                closed.
        """
        check_text(url, "url")
        check_attribute(attribute)
        try:
            part = None if attribute is None else ReadAttribute(attribute)
            answer = await self._participant.read(url, part)
        except ActorStoppedError as exc:
            raise ObjectError(url, Code.GONE, "the runtime has closed") from exc
        if answer.code > LAST_SUCCESS:
            raise ObjectError(url, answer.code, reason_in(answer))
        value = answer.body.get("value")
        if attribute is not None:
            return freeze(value)
        return freeze(value.get("data") if isinstance(value, dict) else None)

    @final
    async def read_record(self, url: str, attribute: str | None = None) -> Json:
        """Read the record of a hyperty or data object in its domain's registry.

        Args:
            url: Address of the hyperty or object.
            attribute: Dotted path in the record, such as `status`; None: the whole record.

        Returns:
            The record or attribute, also of an entry that is disconnected; None: the attribute
            is null.

        If cancelled, nothing has changed.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: The attribute is empty.
            BadUrlError: `url` is no address.
            SearchError: The registry refuses, or does not answer; 404: it has no such record, or
                the record lacks the attribute.
            ActorStoppedError: The runtime has closed.
        """
        check_text(url, "url")
        return await self._participant.discoverer.record(url, attribute)

    @final
    def observe(
        self, url: str, *, p2p: bool | None = None, store: bool = False
    ) -> AbstractAsyncContextManager[ObservedObject]:
        """Observe a data object while the returned context is open.

        The copy has the value of the object from the beginning, and follows each change. After
        a lost change the whole object is read again. When the context is left, the
        subscription ends; a reporter that does not answer is waited for
        `GOODBYE_TIMEOUT` seconds at most.

        Args:
            url: Address of the object.
            p2p: Whether changes and children go by a direct link between the two runtimes, not
                by nodes. True: set one up if possible; False: never; None: while there is one.
                When a link is lost, they go by the node again.
            store: Keep the copy in the store of the runtime. The next observation then begins
                with the stored value, `ObservedObject.is_stale` is True until the object was
                read, and a reporter that is absent for now is waited for.

        Returns:
            An async context manager that yields the copy.

        If cancelled on entering, the hyperty is unsubscribed again, as on leaving.

        Raises:
            BadMessageError: On entering: `url` is not an address.
            ObjectError: On entering. 400: `store` in a runtime without a store, or half a
                character in `name`, `resources` or `schema`; 401: the
                hyperty is undeployed; 403: the reporter refuses; 404: no such object; 408: no
                answer in time; 409: this hyperty observes it already; 410: the runtime has
                closed; 413: the store is full.
        """
        check_text(url, "url")
        return open_observation(self._participant, Observe(url, p2p=p2p, store=store or None))
