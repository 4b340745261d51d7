"""The policies in force: one immutable snapshot, replaced as a whole (POL-03, S9).

Policies are read from TOML files, one policy set each, and again while the node runs.
"""

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs
import trio
from typing_extensions import override

from actors.kit.log import get_logger
from actors.kit.supervision.actor import Actor, ActorRef, Reply
from actors.node.config import PolicyConfig
from actors.node.errors import PolicyFileError
from actors.node.messages import BusMessage, Emitted
from fsm.policy.model import Book, PolicySet
from fsm.policy.page import BadPolicyError
from fsm.policy.pdp import Pdp
from fsm.policy.reading import read_set
from specs.bodies.policy import PolicyChange
from specs.limits.node import MAX_POLICY_BYTES, MAX_POLICY_SETS
from specs.message import Message, refuse, reply_to
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["PolicyReloader", "PolicyStore", "Reload", "ReloadAsked", "read_policies"]


def read_policies(files: Iterable[Path]) -> tuple[PolicySet, ...]:
    """Read policy files, all or none; a folder stands for the `*.toml` in it, by name.

    Raises:
        PolicyFileError: One of them cannot be used, or two sets have the same id.
    """
    found: dict[str, PolicySet] = {}
    for path in _listed(files):
        one = read_policy(path)
        other = found.setdefault(one.id, one)
        if other is not one:
            what = f"its id {one.id!r} is that of {other.source} too; give it another"
            raise PolicyFileError(path, what)
        if len(found) > MAX_POLICY_SETS:
            raise PolicyFileError(path, f"more than {MAX_POLICY_SETS} sets are too many")
    return tuple(found.values())


def read_policy(path: Path) -> PolicySet:
    """Read one policy file.

    Raises:
        PolicyFileError: It cannot be used.
    """
    try:
        return read_set(_document(path), str(path))
    except BadPolicyError as exc:
        what = f"{exc.path}: {exc.reason}" if exc.path else exc.reason
        raise PolicyFileError(path, what) from exc


def _listed(files: Iterable[Path]) -> Sequence[Path]:
    listed: list[Path] = []
    for path in files:
        inside = sorted(path.glob("*.toml")) if path.is_dir() else [path]
        if not inside:
            raise PolicyFileError(path, "no *.toml is in that folder; put one there")
        listed += inside
    return listed


def _document(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_POLICY_BYTES + 1)
    except OSError as exc:
        raise PolicyFileError(path, f"{exc.strerror}; name another") from exc
    if len(content) > MAX_POLICY_BYTES:
        what = f"it has more than {MAX_POLICY_BYTES} bytes; make it several files"
        raise PolicyFileError(path, what)
    try:
        return tomllib.loads(content.decode())
    except RecursionError as exc:
        raise PolicyFileError(path, "its tables or lists are nested too deep") from exc
    except ValueError as exc:
        # What is no UTF-8, no TOML, or a number of thousands of digits.
        raise PolicyFileError(path, f"it is no TOML: {exc}; correct it") from exc


@final
class PolicyStore:
    """Holds what a node judges by; outlives a bus that crashes.

    A judging task takes `pdp` once per message. It is changed by one assignment only, when
    the next one is complete: no judgement uses half of a change.

    Raises:
        PolicyFileError: A file cannot be used; a node must not start without it.
    """

    def __init__(self, config: PolicyConfig) -> None:
        self.config = config
        sets = read_policies(config.files)
        self.pdp = Pdp(Book(sets=sets, combining=config.combining, default=config.default))

    @property
    def book(self) -> Book:
        """The policies in force."""
        return self.pdp.book

    @property
    def is_full(self) -> bool:
        """True if there is no room for one more set."""
        return len(self.book.sets) >= MAX_POLICY_SETS

    def adopt(self, sets: Sequence[PolicySet]) -> Book:
        """Judge by these sets from the next message on."""
        book = attrs.evolve(self.book, sets=tuple(sets), version=self.book.version + 1)
        self.pdp = Pdp(book)
        return book

    def add(self, one: PolicySet) -> Book:
        """Judge by one more set."""
        return self.adopt((*self.book.sets, one))

    def replace(self, one: PolicySet) -> Book:
        """Judge by another set instead of the one of its id, in the same place."""
        return self.adopt([one if old.id == one.id else old for old in self.book.sets])

    def remove(self, name: str) -> Book:
        """Judge without a set."""
        return self.adopt([one for one in self.book.sets if one.id != name])


_log = get_logger("actors.node")

_LASTS: Final = "until the node reads its policy files again or gets other policies"


@final
@attrs.frozen
class Reload:
    """The operator at the node's terminal has the files read again.

    Attributes:
        reply: Receives why they could not be used; empty: they hold now.
    """

    reply: Reply[str]


@final
@attrs.frozen
class ReloadAsked:
    """An administrator asks for it by a message, which is answered when it is done."""

    message: Message
    by: str


_Message: TypeAlias = ReloadAsked | Reload


@final
class PolicyReloader(Actor[_Message]):
    """Reads in a thread, one after the other, and replaces all policies or none."""

    def __init__(self, store: PolicyStore, bus: ActorRef[BusMessage]) -> None:
        self._store = store
        self._bus = bus

    @override
    async def handle(self, message: _Message) -> None:
        match message:
            case ReloadAsked(asked, by):
                await self._bus.tell(Emitted(_answer(asked, await self._reload()), by))
            case Reload(reply):
                outcome = await self._reload()
                reply.send(str(outcome) if isinstance(outcome, PolicyFileError) else "")

    async def _reload(self) -> Book | PolicyFileError:
        """Read the files; the policies stay as they are if that fails."""
        files = self._store.config.files
        try:
            sets = await trio.to_thread.run_sync(read_policies, files, abandon_on_cancel=True)
        except PolicyFileError as error:
            _log.error("policies kept", why=str(error), version=self._store.book.version)
            return error
        book = self._store.adopt(sets)
        _log.warning("policies read again", version=book.version, sets=len(book.sets))
        return book


def _answer(asked: Message, outcome: Book | PolicyFileError) -> Message:
    if isinstance(outcome, PolicyFileError):
        return refuse(asked, Code.BAD_BACKEND, f"{outcome}; the policies stay as they are")
    change = PolicyChange(outcome.version, _LASTS)
    return reply_to(asked, Code.OK, {"value": write_body(change)})
