"""Subscriptions of this runtime to the status of remote records (REG-16, M-29, M-30).

One subscription at the node of the record's domain serves all components of this runtime.
It is removed when the last of them has left, and set again when that node has lost it.
"""

from enum import Enum, auto
from typing import Final, TypeAlias, assert_never, final

import attrs

from fsm.effects import Answer
from specs.message import Message, refuse, reply_to
from specs.reply_code import LAST_SUCCESS, Code

__all__ = [
    "Follow",
    "Left",
    "NodeForgot",
    "RecordWatch",
    "RenewWatch",
    "SetWatch",
    "Unfollow",
    "Unwatch",
    "UnwatchRecord",
    "Watch",
    "WatchEffect",
    "WatchInput",
    "WatchRemoved",
    "WatchSet",
]

_CAPACITY: Final = 4096
"""Registrations followed by one runtime (ours); each node has a bound of its own."""


# ---- what happens


@final
@attrs.frozen(slots=True)
class Watch:
    """A component subscribes to the status of a record; the answer comes when it has the status."""

    request: Message
    url: str


@final
@attrs.frozen(slots=True)
class Unwatch:
    """A component ends its subscription; the answer comes at once."""

    request: Message
    url: str


@final
@attrs.frozen(slots=True)
class Left:
    """A component is no more."""

    by: str


@final
@attrs.frozen(slots=True)
class WatchSet:
    """The answer of a node to `SetWatch` or `RenewWatch`."""

    url: str
    answer: Message


@final
@attrs.frozen(slots=True)
class WatchRemoved:
    """`UnwatchRecord` is finished, for any answer of the node."""

    url: str


@final
@attrs.frozen(slots=True)
class NodeForgot:
    """A node has lost its subscriptions to these records."""

    urls: frozenset[str]


WatchInput: TypeAlias = Watch | Unwatch | Left | WatchSet | WatchRemoved | NodeForgot


# ---- what is to be done


@final
@attrs.frozen(slots=True)
class Follow:
    """Deliver status events of a record to a component; None: to the registry."""

    url: str
    by: str | None


@final
@attrs.frozen(slots=True)
class Unfollow:
    """Deliver them no longer."""

    url: str
    by: str | None


@final
@attrs.frozen(slots=True)
class SetWatch:
    """Subscribe at a node to a record's status (M-29); the host answers `WatchSet`."""

    url: str


@final
@attrs.frozen(slots=True)
class RenewWatch:
    """The same, with patience: the node may just be coming back."""

    url: str


@final
@attrs.frozen(slots=True)
class UnwatchRecord:
    """End the subscription at the node; the host answers `WatchRemoved`."""

    url: str


WatchEffect: TypeAlias = Follow | Unfollow | SetWatch | RenewWatch | UnwatchRecord | Answer


# ---- how


class _Path(Enum):
    """The state of the subscription at the node."""

    NONE = auto()
    SETTING = auto()
    SET = auto()
    REMOVING = auto()


@final
@attrs.define
class _Row:
    """One record.

    Attributes:
        watchers: Addresses of the subscribed components.
        asking: Requests of components that wait for an answer.
    """

    path: _Path = _Path.NONE
    watchers: dict[str, None] = attrs.field(factory=dict)
    asking: list[Message] = attrs.field(factory=list)


@final
class RecordWatch:
    """The table of remote records with subscribers here."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}

    def __contains__(self, url: object) -> bool:
        return url in self._rows

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of all records in the table."""
        return tuple(self._rows)

    def feed(self, happened: WatchInput) -> list[WatchEffect]:
        """Take an input; return the effects, in order."""
        match happened:
            case Watch(request, url):
                return self._watch(request, url)
            case Unwatch(request, url):
                return [*self._drop(url, request.from_), Answer(reply_to(request, Code.OK))]
            case Left(by):
                return [effect for url in self.urls for effect in self._drop(url, by)]
            case WatchSet(url, answer):
                return self._set(url, answer)
            case WatchRemoved(url):
                return self._go_on(url, self._moved(url, _Path.NONE))
            case NodeForgot(urls):
                return [effect for url in self.urls if url in urls for effect in self._renew(url)]
            case _:
                assert_never(happened)

    def _watch(self, request: Message, url: str) -> list[WatchEffect]:
        if url not in self._rows and len(self._rows) >= _CAPACITY:
            why = f"a runtime follows at most {_CAPACITY} registrations"
            return [Answer(refuse(request, Code.TOO_LARGE, why))]
        effects: list[WatchEffect] = [] if url in self._rows else [Follow(url, None)]
        row = self._rows.setdefault(url, _Row())
        if request.from_ not in row.watchers:
            row.watchers[request.from_] = None
            effects.append(Follow(url, request.from_))
        if row.path is _Path.SET:
            return [*effects, Answer(reply_to(request, Code.OK))]
        row.asking.append(request)
        return [*effects, *self._go_on(url, row)]

    def _drop(self, url: str, by: str) -> list[WatchEffect]:
        row = self._rows.get(url)
        if row is None or by not in row.watchers:
            return []
        del row.watchers[by]
        left = [one for one in row.asking if one.from_ == by]
        row.asking = [one for one in row.asking if one.from_ != by]
        why = "its requester no longer wants it"
        ended = [Answer(refuse(one, Code.GONE, why)) for one in left]
        return [Unfollow(url, by), *ended, *self._go_on(url, row)]

    def _set(self, url: str, answer: Message) -> list[WatchEffect]:
        is_set = answer.code <= LAST_SUCCESS
        row = self._moved(url, _Path.SET if is_set else _Path.NONE)
        asking, row.asking = row.asking, []
        if is_set:
            done = [Answer(reply_to(one, Code.OK)) for one in asking]
            return [*done, *self._go_on(url, row)]
        why = str(answer.body.get("description") or "the node did not take the path")
        code = Code(answer.code) if answer.code in _CODES else Code.INTERNAL
        effects: list[WatchEffect] = []
        for one in asking:
            row.watchers.pop(one.from_, None)
            effects += [Unfollow(url, one.from_), Answer(refuse(one, code, why))]
        # A follower with an answer from an earlier path stays, until the node comes back again.
        return [*effects, *([] if row.watchers else self._go_on(url, row))]

    def _renew(self, url: str) -> list[WatchEffect]:
        row = self._rows[url]
        if row.path in {_Path.SETTING, _Path.REMOVING}:
            return []
        row.path = _Path.SETTING
        return [RenewWatch(url)]

    def _moved(self, url: str, path: _Path) -> _Row:
        row = self._rows[url]
        row.path = path
        return row

    def _go_on(self, url: str, row: _Row) -> list[WatchEffect]:
        """Bring the path to where the watchers want it; what is under way is waited for."""
        match row.path:
            case _Path.NONE if row.watchers:
                row.path = _Path.SETTING
                return [SetWatch(url)]
            case _Path.NONE:
                del self._rows[url]
                return [Unfollow(url, None)]
            case _Path.SET if not row.watchers:
                row.path = _Path.REMOVING
                return [UnwatchRecord(url)]
            case _:
                return []


_CODES: Final = frozenset(Code)
