"""Inputs and effects of the mirror of a group's rows (`fsm.group.rows`)."""

from typing import Final, TypeAlias, final

import attrs

from fsm.group.kinds import GroupRow, RowRefusal

THE_NODE: Final = 0
"""Stands for a link where the node itself waits for a row to be written."""


@final
@attrs.frozen(slots=True)
class Change:
    """The node has decided that a row is so.

    Attributes:
        ticket: Number of a link that is answered when the row is written; `THE_NODE`: it waits
            itself; None: nothing waits.
    """

    row: GroupRow
    ticket: int | None = None


@final
@attrs.frozen(slots=True)
class Remove:
    """The node has decided that a row goes.

    Attributes:
        ticket: As of `Change`.
    """

    key: str
    ticket: int | None = None


@final
@attrs.frozen(slots=True)
class Seen:
    """A version of a row that a watch, or a read, has brought.

    Attributes:
        value: None: the row is not there.
        revision: Its revision. Of a row that is not there: of its removal, or, if that is not
            known, any from that of its last version on.
        is_read: Whether it answers a `Read`.
    """

    key: str
    value: bytes | None
    revision: int
    is_read: bool = False


@final
@attrs.frozen(slots=True)
class Gap:
    """A watch begins: all rows below a prefix come, also those that came before."""

    prefix: str


@final
@attrs.frozen(slots=True)
class Current:
    """All rows below a prefix have come that were there when its watch began."""

    prefix: str


@attrs.frozen(slots=True)
class Answer:
    """What has become of a `Put`.

    Attributes:
        number: Its number.
    """

    number: int


@final
@attrs.frozen(slots=True)
class Written(Answer):
    """The engine has made it."""

    revision: int


@final
@attrs.frozen(slots=True)
class Conflicted(Answer):
    """The engine has not made it, because the row has another revision.

    Attributes:
        value: The row that is there; None: there is none.
        revision: As of `Seen`.
    """

    value: bytes | None
    revision: int


@final
@attrs.frozen(slots=True)
class Unanswered(Answer):
    """It was not made, or nobody knows whether it was.

    Attributes:
        why: For people, as half a sentence.
    """

    why: str = ""


@final
@attrs.frozen(slots=True)
class AllUnanswered:
    """No `Put` that is under way will be answered any more."""


@final
@attrs.frozen(slots=True)
class Forget:
    """The node is fenced: nothing of what it knows or wanted counts any more."""


Answered: TypeAlias = Written | Conflicted | Unanswered

Input: TypeAlias = Change | Remove | Seen | Gap | Current | Answered | AllUnanswered | Forget


@final
@attrs.frozen(slots=True)
class Put:
    """Write a row, or delete it, if it has the expected revision.

    Attributes:
        number: Returned with the answer.
        value: None: delete it.
        expected: The revision that it must have; 0: there must be none.
    """

    number: int
    key: str
    value: bytes | None
    expected: int


@final
@attrs.frozen(slots=True)
class Applied:
    """A row that this node has not written is so now.

    Attributes:
        before: What it was until now; None: it is new, or was none that could be read.
    """

    row: GroupRow
    revision: int
    before: GroupRow | None = None


@final
@attrs.frozen(slots=True)
class Withdrawn:
    """A row is not there any more, and this node has not removed it.

    Attributes:
        row: What it was.
    """

    row: GroupRow
    revision: int


@final
@attrs.frozen(slots=True)
class Done:
    """The changes of a row are in the engine: the links that wait for it may be answered.

    Attributes:
        row: What is there; None: the row was removed.
        revision: Its revision.
    """

    key: str
    tickets: tuple[int, ...]
    row: GroupRow | None = attrs.field(default=None, eq=False)
    revision: int = attrs.field(default=0, eq=False)


@final
@attrs.frozen(slots=True)
class Lost:
    """Changes of a row were not made, as the row was not what this node knew.

    Attributes:
        tickets: The links that wait; what they were to be told is wrong.
        row: What the row was to be, at last; None: it was to go.
        there: What is there, and counts instead; None: nothing that can be read.
        revision: Its revision.
    """

    key: str
    tickets: tuple[int, ...]
    row: GroupRow | None
    there: GroupRow | None
    revision: int = attrs.field(default=0, eq=False)


@final
@attrs.frozen(slots=True)
class Read:
    """Read a row, and feed it as `Seen`: whether it is there cannot be known otherwise.

    Attributes:
        revision: That of the answer, if there is no row.
    """

    key: str
    revision: int


@final
@attrs.frozen(slots=True)
class Rejected:
    """A row that another program, or a later version, has written is not taken."""

    key: str
    reason: RowRefusal


RowNews: TypeAlias = Applied | Withdrawn | Lost
"""What the mirror says of a row that is not as this node knew it, or wanted it."""

Effect: TypeAlias = RowNews | Done | Read | Rejected
