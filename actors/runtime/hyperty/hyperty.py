"""The base class of hyperties, the arguments of their handlers (REG-07), and their lifecycle.

A lifecycle spans all restarts of a deployed hyperty; its handle shows it.
"""

import inspect
import secrets
from abc import ABC
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from enum import StrEnum
from traceback import format_exception_only
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, TypeVarTuple, final

import attrs
import trio
from typing_extensions import override

from actors.kit.arguments import check_answer_within
from actors.kit.errors import RestartLimitError
from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, Delivery
from actors.kit.supervision.supervisor import Monitor
from actors.runtime.hyperty.client import HypertyClient
from actors.runtime.hyperty.handlers import NO_HANDLERS, Handlers, handlers_of
from actors.runtime.hyperty.typed import Sendable
from actors.runtime.objects.participant import Participant
from fsm.limits.rates import Rate, TokenBuckets
from fsm.registry.discovery import texts_of
from fsm.sync.value.json import json_size
from specs.errors import ProtoflyError
from specs.jsonvalue import JsonObject
from specs.limits import bus
from specs.limits.discovery import MESSAGE_SCHEMA_BYTES
from specs.message import Message
from specs.reply_code import Code

_log = get_logger("actors.runtime")

_ID_BYTES: Final = 6


@final
class HypertyState(StrEnum):
    """The state of a deployed hyperty."""

    RUNNING = "running"
    """The hyperty handles messages, or is being made anew after a crash."""
    UNDEPLOYED = "undeployed"
    """The hyperty was undeployed, or its runtime has closed."""
    FAILED = "failed"
    """The hyperty crashed more often than allowed, and the runtime has undeployed it."""


@final
class HypertyFailedError(ProtoflyError, public=True):
    """A hyperty crashed too often, and its runtime has given it up.

    Attributes:
        url: Its address.
        name: Its name, as it was deployed.
        cause: The exception of its last crash.
    """

    def __init__(self, url: str, name: str, cause: Exception) -> None:
        # Also for an exception whose own `str` fails.
        last = "".join(format_exception_only(cause)).strip()
        super().__init__(f"hyperty {name!r} at {url} was given up, it crashes too often: {last}")
        self.url = url
        self.name = name
        self.cause = cause


class Lifecycle:
    """The lifecycle of one hyperty.

    Args:
        name: Its name, as it was deployed.
        entropy: Source of random bytes, for correlation ids.
        monitor: Records each exception of a handler, too.

    Attributes:
        url: Its address; empty before the allocation.
        state: Its state.
        errors: Number of exceptions of its handlers so far.
    """

    def __init__(
        self,
        name: str = "hyperty",
        entropy: Callable[[int], bytes] = secrets.token_bytes,
        monitor: Monitor | None = None,
    ) -> None:
        self.name: Final = name
        self.url = ""
        self.state = HypertyState.RUNNING
        self.errors = 0
        self._entropy = entropy
        self._monitor = monitor
        # Writing a traceback takes as long as thirty requests, a line as long as one.
        self._tracebacks = TokenBuckets[None](Rate(bus.TRACEBACKS, bus.TRACEBACKS_AT_ONCE))
        self._lines = TokenBuckets[None](Rate(bus.LOGGED_FAILURES, bus.LOGGED_AT_ONCE))
        self._unlogged = 0
        self._failure: HypertyFailedError | None = None
        self._ended = trio.Event()

    def record_error(self, error: Exception, handler: str) -> str:
        """Record an exception of a handler; never waits or raises.

        Args:
            error: The exception.
            handler: The handled message, for people.

        Returns:
            The correlation id under which the log has the exception, unless there are too many.
        """
        correlation = self._entropy(_ID_BYTES).hex()
        if self._monitor is not None:
            self._monitor.record_crash(self.url, error)
        self.log_error(correlation, handler, f"{type(error).__name__}: {error}", exc_info=error)
        return correlation

    def log_error(self, correlation: str, handler: str, error: str, **whole: object) -> None:
        """Count an exception of a handler, and log it as the limits of the log allow.

        A line says how many failures before it were not logged.

        Args:
            correlation: The correlation id.
            handler: The handled message, for people.
            error: The exception, for a line without a traceback.
            whole: The fields of a line with the traceback.
        """
        self.errors += 1
        now = trio.current_time()
        if self._tracebacks.try_spend(None, now):
            fields = whole
        elif self._lines.try_spend(None, now):
            fields = {"error": error[: bus.LOGGED_ERROR]}
        else:
            self._unlogged += 1
            return
        if self._unlogged:
            fields = {**fields, "unlogged": self._unlogged}
            self._unlogged = 0
        _log.error(
            "handler failed",
            hyperty=self.name,
            url=self.url,
            handler=handler,
            correlation=correlation,
            **fields,
        )

    def give_up(self, crash: Exception) -> HypertyFailedError:
        """End the lifecycle as failed after its last crash; return the error to raise."""
        last = crash.__cause__ if isinstance(crash, RestartLimitError) else crash
        cause = last if isinstance(last, Exception) else crash
        self._failure = HypertyFailedError(self.url, self.name, cause)
        self._failure.__cause__ = cause
        _log.error("hyperty given up", hyperty=self.name, url=self.url, exc_info=cause)
        self._end(HypertyState.FAILED)
        return self._failure

    def finish(self) -> None:
        """End the lifecycle as undeployed. Idempotent; a failed lifecycle stays failed."""
        if self.state is HypertyState.RUNNING:
            self._end(HypertyState.UNDEPLOYED)

    def _end(self, state: HypertyState) -> None:
        self.state = state
        self._ended.set()

    async def wait_until_ended(self) -> HypertyFailedError | None:
        """Wait until the hyperty no longer runs.

        If cancelled, only the wait ends.

        Returns:
            The error of a hyperty that was given up; None if it was undeployed.
        """
        await self._ended.wait()
        return self._failure


@attrs.frozen
class Profile:
    """The description of a hyperty in the domain registry.

    Attributes:
        name: Its name, which need not be unique; others search by it.
        descriptor: Catalogue address of its descriptor; None: it has none.
        resources: What it offers, such as `chat`; others search by it.
        data_schemes: Schemes or data schemas of the data objects it uses, such as `comm`; others
            search by them.
        address: Address it must have, kept by `Runtime.rest` of the runtime; None: one that a
            hyperty of the same descriptor had, or of the same name if there is no descriptor;
            else a new one.
        message_schema: JSON Schema of the requests it takes; None: that of its class, see
            `Hyperty.message_schema`.

    Raises:
        TypeError: Name, resources or schemes are of a wrong kind.
        ValueError: The name is empty.
    """

    name: str = attrs.field()
    descriptor: str | None = None
    resources: tuple[str, ...] = attrs.field(default=(), converter=texts_of)
    data_schemes: tuple[str, ...] = attrs.field(default=(), converter=texts_of)
    address: str | None = None
    message_schema: JsonObject | None = None

    @name.validator
    def _check_name(self, _: object, name: object) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a hyperty is a text, not {name!r}")
        if not name:
            raise ValueError("the name of a hyperty is empty")


Ts = TypeVarTuple("Ts")


@final
class Refused(ProtoflyError, public=True):  # noqa: N818 - an answer, no failure
    """Raised by a handler of a hyperty to answer with a refusal.

    Attributes:
        code: Reply code of the answer.
        why: Reason for people, as half a sentence; it is sent to the requester.
    """

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(f"{int(code)} {why}")
        self.code = code
        self.why = why


@final
@attrs.frozen
class Invited:
    """An invitation to observe a data object.

    Attributes:
        url: Address of the object, for `observe`.
        reporter: Address of the hyperty that reports it.
        schema: Catalogue address of its data schema.
        shown: What the reporter shows of the object before it is observed, such as its `name`.
        message: The request that invites.
    """

    url: str
    reporter: str
    schema: str
    shown: JsonObject
    message: Message


class Hyperty(HypertyClient, ABC):
    """The base class of hyperties; an application overrides the handlers it needs.

    An exception of a handler (`on_...`) ends one message: a request is answered 500, and the log
    has the exception. An exception of `started` or of spawned work is a crash: the hyperty is
    made anew, with the same address.

    Attributes:
        url: Its address; set before `started` is called.
        handlers: Its methods that are marked by `handles`.
        answer_within: Seconds that a handler of requests may take, 600 at most, unless the
            requester names a time; then it is cancelled, and the request is answered 408.
            Meanwhile requesters are kept waiting by provisional answers. None: a handler may take
            as long as it likes, but requesters wait for 15 seconds only.
        shield: Whether its handlers of requests go on when a requester is cancelled or has waited
            too long; else they are cancelled then. `handles` shields a single one.
    """

    _host: Actor[Delivery]
    handlers: ClassVar[Handlers] = NO_HANDLERS
    answer_within: ClassVar[float | None] = None
    shield: ClassVar[bool] = False

    @override
    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        _check_hooks(cls)
        if cls.answer_within is not None:
            check_answer_within(cls.answer_within, f"{cls.__name__}.answer_within")
        cls.handlers = handlers_of(cls)

    @override
    def __repr__(self) -> str:
        name = type(self).__name__
        if "_participant" not in vars(self):
            return f"<{name}, not deployed>"
        return f"<{name} {self.url} in {self._participant.runtime.url}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Explain why an operation cannot be done yet; called for what is absent."""
            if name in {"_participant", "_host"}:
                why = "is not deployed yet: report, request and spawn in `started`, or later"
                raise RuntimeError(f"{type(self).__name__} {why}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @final
    @classmethod
    def message_schema(cls) -> JsonObject | None:
        """Return the JSON Schema of the requests that methods marked by `handles` take.

        Its `$defs` have the values of requests, and of answers by the name of the method. None:
        there are no such methods.
        """
        return cls.handlers.schema

    @final
    @property
    def configuration(self) -> JsonObject:
        """Configuration of its descriptor; empty if it came from no catalogue."""
        return self._participant.configuration

    async def started(self) -> None:
        """Prepare the hyperty; runs before its first message.

        Work that takes longer or goes on is started here by `spawn`.

        If cancelled, with the deployment or the runtime, the hyperty gets no message.
        """

    async def on_request(self, message: Message) -> Sendable:
        """Handle a request that no method marked by `handles` takes.

        The returned value becomes the `value` of the answer 200.

        Requests of one runtime begin in the order in which they came, then run side by side, at
        most `CONCURRENT` at a time, of one runtime at most half. The default refuses each request
        with 400.

        If cancelled, by a restart or the undeployment of the hyperty, the request is answered 503;
        if cancelled because its requester has given up, it is not answered.

        Raises:
            Refused: To answer with another code.
        """
        path = message.body.get("resource")
        about = f" of {path[:_PATH_SHOWN]!r}" if isinstance(path, str) else ""
        known = "; it takes " + ", ".join(self.handlers.words) if self.handlers.words else ""
        raise Refused(Code.MALFORMED, f"{self.url} takes no {message.type}{about}{known}")

    async def on_event(self, message: Message) -> None:
        """Handle an event; no answer is sent, and the next message waits until this returns.

        Other hyperties send events by `send`; `message.value` is the value that they send.
        Events of a data object come here if the hyperty has subscribed to them by messages of
        its own; those of `observe` and `report` do not.

        If cancelled, because the hyperty stops, the event is lost.
        """

    async def on_subscribe(self, url: str, observer: str) -> None:
        """Decide whether a hyperty may observe a data object that this one reports.

        A return accepts. The handler is not called for hyperties that were invited or allowed, for
        this hyperty itself, and for public objects; it is called for expelled hyperties. No answer
        in time is a refusal. The default refuses with 403.

        Args:
            url: Address of the object.
            observer: Address of the hyperty that wants to observe.

        If cancelled, because the hyperty stops, the observer is refused.

        Raises:
            Refused: To refuse; the observer gets the reason.
        """
        raise Refused(Code.FORBIDDEN, f"{observer} is not invited to {url}")

    async def on_invited(self, invited: Invited) -> None:
        """Handle an invitation; a return accepts, without any obligation.

        Observe in spawned work, as the handler must return soon. The default handles the
        invitation by `on_request`.

        If cancelled, because the hyperty stops, the invitation fails like a request of
        `on_request`.

        Raises:
            Refused: To decline.
        """
        await self.on_request(invited.message)

    @final
    def spawn(self, work: Callable[[*Ts], Awaitable[None]], *args: *Ts) -> None:
        """Run work in a task of this hyperty, beside its handlers.

        An exception of the work is a crash of the hyperty. The work is cancelled when the
        hyperty stops or is made anew.

        Args:
            work: The async function to run.
            args: Its arguments.

        Raises:
            ActorStoppedError: The hyperty has not started yet, or has stopped.
        """
        self._host.spawn(work, *args)

    @final
    def enter(self, participant: Participant, host: Actor[Delivery]) -> None:
        """Set participant and host; called by the host before `started`.

        Args:
            participant: The hyperty, through all its lives.
            host: The actor of this life; it runs spawned work.
        """
        self._participant = participant
        self._host = host


HypertyMaker: TypeAlias = Callable[[], Hyperty]
"""Makes a hyperty, anew for each of its lives; a class will do."""


def recorded_schema(make: HypertyMaker) -> JsonObject | None:
    """Return the message schema of a hyperty for its registration record.

    Args:
        make: Makes the hyperty.

    Returns:
        `Hyperty.message_schema` of a class. None: the class has none, `make` is no class, or the
        schema is larger than `MESSAGE_SCHEMA_BYTES`.
    """
    schema = None
    if isinstance(make, type) and issubclass(make, Hyperty):
        schema = make.message_schema()
    return schema if json_size(schema) <= MESSAGE_SCHEMA_BYTES else None


_HOOKS: Final = frozenset({"started", "on_request", "on_event", "on_subscribe", "on_invited"})
_PATH_SHOWN: Final = 100
"""Characters of an unknown path that a refusal repeats (our choice)."""

_LIKENESS: Final = 0.8
"""Least likeness to the name of a hook that counts as a typing error (0 to 1; ours)."""


def _check_hooks(made: type) -> None:
    """Refuse a class with hooks that would never be called, or not be awaited.

    Raises:
        TypeError: A hook is no async function, or a method is named nearly like a hook.
    """
    for name, method in vars(made).items():
        if not inspect.isfunction(method):
            continue
        where = f"{made.__name__}.{name}"
        if name in _HOOKS and not inspect.iscoroutinefunction(method):
            raise TypeError(f"{where} has to be an async function")
        if name not in _HOOKS and name.startswith("on"):
            hook = "started" if name in {"on_start", "on_started"} else ""
            near = [hook] if hook else get_close_matches(name, sorted(_HOOKS), 1, _LIKENESS)
            if near:
                raise TypeError(f"{where} is never called; did you mean {near[0]}?")
