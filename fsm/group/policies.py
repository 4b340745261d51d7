"""Policies of a domain: all nodes of a group apply the same version, from one row of the engine.

The engine is the store that the nodes share. A change is a whole new version. It is written by
compare-and-set, and applied only when the engine has it. So of two simultaneous changes only one is
made, and the sender of the other is told. The version is the time of the change, or at least one
above the version that its node knew: another node may have applied a higher version, which the
engine has lost, or a program has overwritten. If the new version were lower, that node would undo a
change that was already confirmed. A node applies a whole version or nothing of it: if it cannot
read a version, it denies everything until a readable version comes.

The first node writes the policies of its files; a node that joins later uses the present version,
and reports if its files differ. A version that a node has applied is written again if an engine
comes back without it, or with an older version.
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Final, Protocol

import attrs
import orjson

from fsm.effects import Refused
from fsm.policy.model import Book, PolicySet
from fsm.policy.page import BadPolicyError
from fsm.policy.reading import read_set
from fsm.policy.terms import Algorithm, Result
from specs.jsonvalue import Json, JsonObject
from specs.limits.group import GROUP_POLICY_BYTES
from specs.limits.node import MAX_POLICY_SETS
from specs.reply_code import Code

# ---- the row


POLICY_KEY: Final = "policy/book"
"""Key of the only row that contains policies."""


@attrs.frozen(slots=True)
class PolicyRow:
    """Row of the shared store that contains the policies of the domain.

    Attributes:
        version: Version of the policies; 0: the version is unreadable, too.
        book: The policies; None: this node cannot read them.
    """

    version: int
    book: Book | None

    @property
    def key(self) -> str:
        """The key of the row in the shared store."""
        return POLICY_KEY


def write_policies(row: PolicyRow) -> JsonObject:
    """Return the JSON value of a row of policies."""
    return {"version": row.version} if row.book is None else _encode_book(row.book)


def read_policies(value: bytes) -> PolicyRow:
    """Decode a row of policies; an unreadable row has no policies, so that nothing is permitted."""
    try:
        fields: Json = orjson.loads(value) if len(value) <= GROUP_POLICY_BYTES else None
    except ValueError:
        fields = None
    version = fields.get("version") if isinstance(fields, dict) else None
    is_number = isinstance(version, int) and not isinstance(version, bool)
    if isinstance(fields, dict) and isinstance(version, int) and is_number and version > 0:
        return PolicyRow(version, _read_book(fields, version))
    return PolicyRow(0, None)


def _encode_book(book: Book) -> JsonObject:
    return {
        "version": book.version,
        "combining": str(book.combining),
        "default": str(book.default),
        "sets": [{"source": each.source, "document": each.document} for each in book.sets],
    }


def _read_book(fields: Mapping[str, Json], version: int) -> Book | None:
    """Decode policies, or return None if this node does not understand a part of them."""
    match fields:
        case {
            "combining": str(combining),
            "default": str(default),
            "sets": list(written),
        } if len(written) <= MAX_POLICY_SETS:
            try:
                sets = tuple(_read_set(each) for each in written)
                book = Book(
                    sets=sets,
                    combining=Algorithm(combining),
                    default=Result(default),
                    version=version,
                )
            except (BadPolicyError, ValueError):
                return None
            return book if len({each.id for each in sets}) == len(sets) else None
        case _:
            return None


def _read_set(written: Json) -> PolicySet:
    match written:
        case {"source": str(source), "document": dict(document)}:
            return read_set(document, source)
        case _:
            raise ValueError(written)


def _is_alike(first: Book, second: Book) -> bool:
    """Return whether two sets of policies are equal except for their versions and sources."""
    return _content(first) == _content(second)


def _content(book: Book) -> tuple[Algorithm, Result, list[JsonObject]]:
    return book.combining, book.default, [each.document for each in book.sets]


_UNREADABLE: Final = read_set(
    {
        "id": "unreadable",
        "policies": [
            {
                "id": "all",
                "rules": [
                    {
                        "id": "all",
                        "effect": "deny",
                        "reason": "this node cannot read the policies of its domain",
                    }
                ],
            }
        ],
    },
    "this node",
)
"""The policies that a node applies if it cannot read those of its domain: they deny everything."""


class Whose(StrEnum):
    """Owner of a version in the node's report: the domain (engine), or this node (applied)."""

    DOMAIN = "domain"
    NODE = "node"


class PoliciesPort(Protocol):
    """Callbacks of `PoliciesCore` to its host; none of them may call the core."""

    def judge(self, book: Book) -> None:
        """Apply these policies to all messages from now on."""

    def write(self, book: Book) -> None:
        """Write policies to the shared store as a new version."""

    def answer(self, outcome: Book | Refused) -> None:
        """Answer the operator who proposed a change: the policies in effect, or a refusal."""

    def report_difference(self, version: int) -> None:
        """Report that the policies of the domain differ from those of this node's files."""


BUSY: Final = Refused(Code.UNAVAILABLE, "another change of the policies is being written")
_LEFT: Final = Refused(
    Code.UNAVAILABLE, "the node has left its group, and whether the change was made is not known"
)
_LARGE: Final = Refused(
    Code.TOO_LARGE, f"the policies of a domain have at most {GROUP_POLICY_BYTES} bytes together"
)
_NO_JSON: Final = Refused(Code.MALFORMED, "a set has a value that JSON does not have")


class PoliciesCore:
    """Policies of the domain as one node of a group reads, applies and changes them.

    Args:
        files: The policies of the node's own files.
        port: The host.
    """

    def __init__(self, files: Book, port: PoliciesPort) -> None:
        self._files = files
        self._port: Final = port
        self._agreed: Book | None = None
        self._there: PolicyRow | None = None
        self._writing: Book | None = None
        self._is_asked = False
        self._is_known = False

    @property
    def is_settled(self) -> bool:
        """True if no write of policies is under way."""
        return self._writing is None

    @property
    def problem(self) -> str | None:
        """The reason why the node denies all messages, as half a sentence, or None."""
        if self._there is None or self._there.book is not None or self._is_older(self._there):
            return None
        version = self._there.version
        return f"version {version} cannot be read" if version else "they cannot be read"

    @property
    def versions(self) -> Mapping[StrEnum | IntEnum, int]:
        """The version in the shared store and the version that this node applies; 0: no version."""
        in_engine = 0 if self._there is None else self._there.version
        agreed = 0 if self._agreed is None or self.problem is not None else self._agreed.version
        return {Whose.DOMAIN: in_engine, Whose.NODE: agreed}

    # ---- the row of the engine

    def take_row(self, row: PolicyRow | None) -> None:
        """Apply the row of policies in the shared store; None: the store has no policies."""
        self._writing = None
        if self._end_proposal():
            why = "another node has changed the policies; read them, and ask again"
            self._port.answer(Refused(Code.CONFLICT, why))
        if row is None:
            self._there = None
        else:
            self._adopt(row)
        self._mend()

    def join(self) -> None:
        """Allow writes, since the node is a member and knows the shared rows. Idempotent."""
        self._is_known = True
        self._mend()

    def fence(self) -> None:
        """Stop writes and refuse an open proposal: the node is no longer a member. Idempotent."""
        self._is_known = False
        self._there = self._writing = None
        if self._end_proposal():
            self._port.answer(_LEFT)

    def _adopt(self, row: PolicyRow) -> None:
        self._there = row
        if self._is_older(row):
            return
        if row.book is None:
            version = max(row.version, self._newest)
            self._port.judge(Book(sets=(_UNREADABLE,), default=Result.DENY, version=version))
            return
        self._agreed = row.book
        self._port.judge(row.book)
        if not self._is_silent and not _is_alike(self._files, row.book):
            self._port.report_difference(row.version)

    @property
    def _is_silent(self) -> bool:
        """True if the files of this node have no rule at all."""
        return _is_alike(self._files, Book())

    def _is_older(self, row: PolicyRow) -> bool:
        """Return whether a row is older than the policies that this node has applied."""
        return 0 < row.version < self._newest

    @property
    def _newest(self) -> int:
        return 0 if self._agreed is None else self._agreed.version

    def _mend(self) -> None:
        """Write this node's policies, or those of its files, if the shared store lacks them."""
        lacks = self._there is None or self._is_older(self._there)
        wanted = self._agreed or (None if self._is_silent else self._files)
        if self._is_known and lacks and wanted is not None and self._writing is None:
            self._writing = wanted
            self._port.write(wanted)

    # ---- writes of this node

    def propose(self, book: Book, *, is_of_files: bool = False, at: int = 0) -> None:
        """Write other policies for the domain to the shared store; the host gets an answer.

        Args:
            book: The policies; their version is ignored.
            is_of_files: Whether they are the policies in the files of this node.
            at: Seconds since the epoch, by the clock of this node.
        """
        if self._writing is not None:
            self._port.answer(BUSY)
            return
        in_engine = 0 if self._there is None else self._there.version
        wanted = attrs.evolve(book, version=max(self._newest + 1, in_engine + 1, at))
        flaw = _flaw(wanted)
        if flaw is not None:
            self._port.answer(flaw)
            return
        if is_of_files:
            self._files = wanted
        if self._agreed is not None and self.problem is None and _is_alike(wanted, self._agreed):
            self._port.answer(self._agreed)
            return
        self._writing, self._is_asked = wanted, True
        self._port.write(wanted)

    def end_write(self) -> None:
        """Apply the policies that this node wrote, since the shared store has them now."""
        written, self._writing = self._writing, None
        is_asked = self._end_proposal()
        if written is not None:
            self._adopt(PolicyRow(written.version, written))
            if is_asked:
                self._port.answer(written)

    def _end_proposal(self) -> bool:
        """Mark an open proposal as answered; return whether a proposal was open."""
        is_asked, self._is_asked = self._is_asked, False
        return is_asked


def _flaw(book: Book) -> Refused | None:
    """Return the refusal of policies that other nodes could not read, or None."""
    try:
        text = orjson.dumps(_encode_book(book))
    except orjson.JSONEncodeError:
        return _NO_JSON
    if len(text) > GROUP_POLICY_BYTES:
        return _LARGE
    read = read_policies(text).book
    return None if read is not None and _is_alike(read, book) else _NO_JSON
