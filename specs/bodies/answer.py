"""Bodies of answers: one class per shape. Which request gets which says `specs.message_catalogue`.

A provisional answer is below 200, a refusal at or above 300 (MSG-05, MSG-17).
`specs.message.reply_to` sets the code; an answer that is written from one of
these classes says it already.
"""

from typing import Annotated, Final, TypeAlias

import attrs

from specs.bodies.object import Lease, Snapshot, Version
from specs.bodies.registry import Allocated, FoundRecord
from specs.bodies.session import IceServers, SessionGranted, StatementGiven, TurnServer
from specs.jsonvalue import Json
from specs.limits.protocol import MAX_ID
from specs.reply_code import FIRST_CODE, FIRST_FINAL, LAST_CODE, LAST_SUCCESS, Code
from specs.schema.field import Address, Filled, Names, add_checks, wire
from specs.schema.shape import Number, Size, Whole

Yes: TypeAlias = Annotated[int, Whole(FIRST_FINAL, LAST_SUCCESS)]
"""A code that says yes."""

OK: Final = int(Code.OK)

RetryAfter: TypeAlias = Annotated[float, Number(0.0, MAX_ID)]
"""Seconds from a refusal to the next attempt that may succeed."""


@attrs.frozen(slots=True, field_transformer=add_checks)
class Success:
    """What every answer that says yes may hold, behind its own fields."""

    code: Yes = attrs.field(default=OK, kw_only=True)
    description: str | None = attrs.field(default=None, kw_only=True)


@attrs.frozen(slots=True, field_transformer=add_checks)
class Provisional:
    """Not yet: the final answer follows (MSG-05).

    Attributes:
        source: The addressee, where several are asked (M-33).
    """

    code: Annotated[int, Whole(FIRST_CODE, FIRST_FINAL - 1)] = int(Code.TRYING)
    description: str | None = None
    source: Address | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class Refusal:
    """No, and why. A registry that knows only disconnected records shows them (M-25).

    Attributes:
        description: The reason, for people.
        source: The refusing component, where several are asked (M-33, M-47).
        retry_after: Seconds after which the same request may be granted; absent: not known, or
            never.
    """

    code: Annotated[int, Whole(LAST_SUCCESS + 1, LAST_CODE)]
    description: str | None = None
    source: Address | None = None
    value: Json = None
    retry_after: RetryAfter | None = attrs.field(default=None, metadata=wire("retryAfter"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class Done:
    """Yes, and nothing more to say.

    Attributes:
        source: The answering component, where several are asked (M-33, M-47, M-48).
    """

    code: Yes = OK
    description: str | None = None
    source: Address | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class Sourced(Success):
    """Yes, from one of several that were asked (M-33, M-47, M-48, C-81)."""

    source: Address


@attrs.frozen(slots=True, field_transformer=add_checks)
class Listed(Success):
    """The live addresses of a runtime, now (M-08); it may have none."""

    value: tuple[Address, ...]


@attrs.frozen(slots=True, field_transformer=add_checks)
class SessionOpened(Success):
    """The session is open (M-14, M-15)."""

    value: SessionGranted


@attrs.frozen(slots=True, field_transformer=add_checks)
class SessionResumed(Success):
    """The session is open again; its token may be a new one (M-15)."""

    value: SessionGranted | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class StatementRenewed(Success):
    """The domain states again which key is the runtime's (M-17)."""

    value: StatementGiven


@attrs.frozen(slots=True, field_transformer=add_checks)
class AddressesGiven(Success):
    """The addresses that were asked for (M-18)."""

    value: Allocated


@attrs.frozen(slots=True, field_transformer=add_checks)
class RecordFound(Success):
    """The record of an address (M-25)."""

    value: FoundRecord


@attrs.frozen(slots=True, field_transformer=add_checks)
class RecordsFound:
    """A page of the records a search found, newest first (M-26..M-28).

    Attributes:
        next: What the request for the next page says as `after`; absent: this is the last page.
    """

    value: tuple[FoundRecord, ...]
    code: Yes = OK
    description: str | None = None
    next: Filled | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class RecordsAway:
    """Only disconnected records; without a value: no answer came in time (M-25..M-28).

    Attributes:
        next: As of `RecordsFound`.
    """

    code: Annotated[int, Whole(Code.TIMEOUT, Code.TIMEOUT)] = int(Code.TIMEOUT)
    value: tuple[FoundRecord, ...] | None = None
    description: str | None = None
    next: Filled | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class AttributeRead(Success):
    """One attribute of a record or data object, which may be null (M-25, M-41).

    Attributes:
        version: Of the data object.
    """

    value: Json
    version: Version | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class AttributeAway:
    """One attribute of a disconnected record; without a value: no answer came in time (M-25)."""

    code: Annotated[int, Whole(Code.TIMEOUT, Code.TIMEOUT)] = int(Code.TIMEOUT)
    value: Annotated[tuple[Json, ...], Size(1, 1)] | None = None
    description: str | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObjectCreated(Success):
    """The address of a new object, and its child resources (M-32)."""

    resource: Address
    children_resources: Names | None = attrs.field(default=None, metadata=wire("childrenResources"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class ChildrenReported:
    """The child resources to listen to, before the object comes (M-36, SYN-07)."""

    resources: Names
    code: Annotated[int, Whole(FIRST_CODE, FIRST_FINAL - 1)] = int(Code.TRYING)
    description: str | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObjectShown(Success):
    """The newest object, version included (M-36, M-41)."""

    value: Snapshot


@attrs.frozen(slots=True, field_transformer=add_checks)
class SubscriptionGranted(Success):
    """The newest object; the observer hears of it from now on (M-38).

    Attributes:
        lease: How long; absent: until it leaves or is expelled, or the object goes.
    """

    value: Snapshot
    lease: Lease | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class SubscriptionRenewed(Success):
    """The observer goes on hearing of the object (M-38).

    Attributes:
        value: The newest object; absent: it has the version that the observer has.
        lease: As of `SubscriptionGranted`, from now on.
        renewed: Absent: the subscription was over, and it is a new one.
    """

    value: Snapshot | None = None
    lease: Lease | None = None
    renewed: bool | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObjectsResumed(Success):
    """The objects that a reporter takes up again (M-51)."""

    value: Annotated[tuple[Snapshot, ...], Size(1)]


@attrs.frozen(slots=True, field_transformer=add_checks)
class ValueGiven(Success):
    """The requested value, in the words of the answering component (M-31, M-55, M-58)."""

    value: Json


@attrs.frozen(slots=True, field_transformer=add_checks)
class TokenGiven(Success):
    """A signed record, as a JSON Web Token (M-56)."""

    value: Filled


@attrs.frozen(slots=True, field_transformer=add_checks)
class TurnGiven(Success):
    """A relay to use (M-58)."""

    value: TurnServer


@attrs.frozen(slots=True, field_transformer=add_checks)
class IceServersGiven(Success):
    """The servers of STUN and TURN that there are (M-58)."""

    value: IceServers
