"""What was done, and what was seen of it: the evidence that the rules judge."""

from typing import TypeAlias

import attrs


@attrs.frozen
class Asked:
    """A request was made.

    Attributes:
        at: Trio time, as everywhere here.
        number: Which request; no number comes twice in a run.
        by: Whose, with its life: `r0.1`.
        to: The address asked.
    """

    at: float
    number: int
    by: str
    to: str


@attrs.frozen
class Answered:
    """It was answered, by whomever.

    Attributes:
        value: The number that the answer says it is to; None: it says none.
    """

    at: float
    number: int
    code: int
    value: int | None


@attrs.frozen
class Executed:
    """A hyperty was given the request.

    Attributes:
        by: Address of the hyperty.
    """

    at: float
    number: int
    by: str


@attrs.frozen
class Observing:
    """Somebody begins to ask to observe an object; `stand` counts how often it did."""

    at: float
    by: str
    url: str
    stand: int


@attrs.frozen
class Heard:
    """An observer was notified of a change of an object.

    Attributes:
        path: Of what is other; one that was read has several, each with its own.
    """

    at: float
    by: str
    url: str
    version: int
    path: str


@attrs.frozen
class Overheard:
    """A change of an object came to a hyperty that has no copy of it."""

    at: float
    by: str
    url: str
    version: int


@attrs.frozen
class Left:
    """An observer was notified that it does not observe any more."""

    at: float
    by: str
    url: str


@attrs.frozen
class Changed:
    """A reporter was notified that its change is taken: a 200."""

    at: float
    url: str
    version: int


@attrs.frozen
class Created:
    """A creator was notified that its child is kept.

    Attributes:
        child: Name of the child.
    """

    at: float
    by: str
    url: str
    child: str


@attrs.frozen
class Removed:
    """A creator deletes its child."""

    at: float
    by: str
    url: str
    child: str


@attrs.frozen
class Held:
    """At the very end, somebody has an object: as its reporter, or a copy of it.

    Attributes:
        value: What it holds, as JSON with its keys in order.
        children: What it holds beside, as such JSON, by name.
    """

    at: float
    by: str
    url: str
    version: int
    value: str
    is_reporter: bool = False
    children: str = "{}"


@attrs.frozen
class Died:
    """A life ended without a word: what it waited for is nobody's any more."""

    at: float
    by: str


@attrs.frozen
class Probed:
    """After all was well again, one asked another.

    Attributes:
        code: Of the answer; 0: none came.
    """

    at: float
    by: str
    to: str
    code: int


Remark: TypeAlias = (
    Asked
    | Answered
    | Executed
    | Observing
    | Heard
    | Overheard
    | Left
    | Changed
    | Created
    | Removed
    | Died
    | Probed
    | Held
)
"""One line of a history."""


@attrs.define
class History:
    """All of a run, in order.

    Attributes:
        remarks: What was done and seen.
        left_over: What was still there when everybody had gone: links, listeners.
        different: In what the nodes of a domain differed at last from the rows of its engine.
    """

    remarks: list[Remark] = attrs.field(factory=list)
    left_over: list[str] = attrs.field(factory=list)
    different: list[str] = attrs.field(factory=list)

    def note(self, remark: Remark) -> None:
        """Add a line."""
        self.remarks.append(remark)
