"""Bodies of answers, one class for each form; `specs.message_catalogue` assigns them to requests.

A provisional answer has a code below 200, a refusal one at or above 300 (MSG-05, MSG-17).
`specs.message.reply_to` sets the code; a body that is written from one of these classes contains
the code already.
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
"""A reply code of success."""

OK: Final = int(Code.OK)

RetryAfter: TypeAlias = Annotated[float, Number(0.0, MAX_ID)]
"""Seconds from a refusal to the next attempt that may succeed."""


@attrs.frozen(slots=True, field_transformer=add_checks)
class Success:
    """The common fields of every successful answer, besides its own fields."""

    code: Yes = attrs.field(default=OK, kw_only=True)
    description: str | None = attrs.field(default=None, kw_only=True)


@attrs.frozen(slots=True, field_transformer=add_checks)
class Provisional:
    """A provisional answer: the final one follows (MSG-05).

    Attributes:
        source: The answering component, if several are asked (M-33).
    """

    code: Annotated[int, Whole(FIRST_CODE, FIRST_FINAL - 1)] = int(Code.TRYING)
    description: str | None = None
    source: Address | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class Refusal:
    """A refusal. A registry that knows only disconnected records includes them (M-25).

    Attributes:
        description: The reason, for people.
        source: The refusing component, if several are asked (M-33, M-47).
        retry_after: Seconds after which the same request may be granted; absent: unknown, or never.
    """

    code: Annotated[int, Whole(LAST_SUCCESS + 1, LAST_CODE)]
    description: str | None = None
    source: Address | None = None
    value: Json = None
    retry_after: RetryAfter | None = attrs.field(default=None, metadata=wire("retryAfter"))


@attrs.frozen(slots=True, field_transformer=add_checks)
class Done:
    """A successful answer without a value.

    Attributes:
        source: The answering component, if several are asked (M-33, M-47, M-48).
    """

    code: Yes = OK
    description: str | None = None
    source: Address | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class Sourced(Success):
    """A successful answer of one of several components (M-33, M-47, M-48, C-81)."""

    source: Address


@attrs.frozen(slots=True, field_transformer=add_checks)
class Listed(Success):
    """The present live addresses of a runtime (M-08), possibly none."""

    value: tuple[Address, ...]


@attrs.frozen(slots=True, field_transformer=add_checks)
class SessionOpened(Success):
    """The answer to a session's open (M-14, M-15)."""

    value: SessionGranted


@attrs.frozen(slots=True, field_transformer=add_checks)
class SessionResumed(Success):
    """The answer to a session's re-open, perhaps with a new token (M-15)."""

    value: SessionGranted | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class StatementRenewed(Success):
    """A new statement of the domain about the runtime's key (M-17)."""

    value: StatementGiven


@attrs.frozen(slots=True, field_transformer=add_checks)
class AddressesGiven(Success):
    """The addresses that were requested (M-18)."""

    value: Allocated


@attrs.frozen(slots=True, field_transformer=add_checks)
class RecordFound(Success):
    """The record of an address (M-25)."""

    value: FoundRecord


@attrs.frozen(slots=True, field_transformer=add_checks)
class RecordsFound:
    """A page of the records a search found, newest first (M-26..M-28).

    Attributes:
        next: Value of `after` in the request for the next page; absent: this is the last page.
    """

    value: tuple[FoundRecord, ...]
    code: Yes = OK
    description: str | None = None
    next: Filled | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class RecordsAway:
    """Records that are all disconnected; without a value: no answer came in time (M-25..M-28).

    Attributes:
        next: As in `RecordsFound`.
    """

    code: Annotated[int, Whole(Code.TIMEOUT, Code.TIMEOUT)] = int(Code.TIMEOUT)
    value: tuple[FoundRecord, ...] | None = None
    description: str | None = None
    next: Filled | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class AttributeRead(Success):
    """One attribute of a record or data object, which may be null (M-25, M-41).

    Attributes:
        version: Version of the data object.
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
    """The child resources to listen to, sent before the object (M-36, SYN-07)."""

    resources: Names
    code: Annotated[int, Whole(FIRST_CODE, FIRST_FINAL - 1)] = int(Code.TRYING)
    description: str | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObjectShown(Success):
    """The newest object, with its version (M-36, M-41)."""

    value: Snapshot


@attrs.frozen(slots=True, field_transformer=add_checks)
class SubscriptionGranted(Success):
    """The newest object, for an observer that gets its changes from now on (M-38).

    Attributes:
        lease: Duration in seconds; absent: until it leaves or is expelled, or the object is
            deleted.
    """

    value: Snapshot
    lease: Lease | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class SubscriptionRenewed(Success):
    """The renewal of an observer's subscription (M-38).

    Attributes:
        value: The newest object; absent: the observer has that version.
        lease: As in `SubscriptionGranted`, counted from now.
        renewed: Absent: the former subscription was over, and this is a new one.
    """

    value: Snapshot | None = None
    lease: Lease | None = None
    renewed: bool | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class ObjectsResumed(Success):
    """The objects that a reporter resumes (M-51)."""

    value: Annotated[tuple[Snapshot, ...], Size(1)]


@attrs.frozen(slots=True, field_transformer=add_checks)
class ValueGiven(Success):
    """The requested value, in the form of the answering component (M-31, M-55, M-58)."""

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
    """The available STUN and TURN servers (M-58)."""

    value: IceServers
