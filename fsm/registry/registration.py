"""The domain registry's table of records: registration, update, expiry, search.

A record describes a registered hyperty or data object. `RegistrationCore` changes the records in
memory; its host writes each change to disk before it sends the resulting messages (I-G3). Times are
seconds since the epoch, because records outlive the process. Records expire without a keep-alive
(I-G4); a change of status that is visible to other runtimes is reported (I-G5).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol, TypeAlias

import attrs

from fsm.engine import Entity, Step
from fsm.limits.shares import Share, UserShares
from fsm.limits.timers import Alarms
from fsm.machines.registration import REGISTRATION, State, Trigger
from fsm.registry import records
from specs.errors import BadMessageError
from specs.jsonvalue import JsonObject
from specs.limits.node import (
    DOMAIN_RECORD_BYTES,
    MAX_DOMAIN_RECORDS,
    MAX_RECORDS,
    RECORD_RETRY,
    USER_RECORD_BYTES,
    USER_RECORDS,
)
from specs.reply_code import Code

_MANY: Final = f"a runtime has at most {MAX_RECORDS} records"
_FULL: Final = f"the registry has {MAX_DOMAIN_RECORDS} records, and no room for another"
_EACH: Final = Share(USER_RECORDS, USER_RECORD_BYTES)
_TOGETHER: Final = Share(MAX_DOMAIN_RECORDS, DOMAIN_RECORD_BYTES)
_VISIBLE: Final = frozenset({State.LIVE, State.LASTING, State.DISCONNECTED})


class RegistrationPort(Protocol):
    """Calls of `RegistrationCore` to its host, which stores and reports; none calls the core."""

    def step(self, step: Step) -> None:
        """Trace a state machine transition of a record."""

    def keep(self, row: records.Row) -> None:
        """Store a new or changed record durably."""

    def forget(self, url: str) -> None:
        """Remove the record of an address from durable storage."""

    def report_status(self, url: str, status: State) -> None:
        """Report a status to the subscribers of a record (M-30)."""


_Before: TypeAlias = tuple[records.Row | None, tuple[str, State] | None]
"""The state of an address before the changes that are not durable yet, to be able to undo them.

It consists of the record, and the key and state of the record's state machine, if they existed.
"""


class RegistrationCore:
    """The records of one domain, with their expiry and their limits for each user.

    The host writes changes to disk in groups. After each group it calls `settle`, or `revert` if
    the group could not be written; `revert` restores the state before the group.

    Args:
        port: The host.
        rows: The records that an earlier process has stored.
        is_ours: Returns whether this node, and no other of the domain, handles the expiry of a
            record; None: this node handles all.
    """

    def __init__(
        self,
        port: RegistrationPort,
        rows: Iterable[records.Row] = (),
        is_ours: Callable[[str], bool] | None = None,
    ) -> None:
        self._port = port
        self._is_ours = is_ours
        self._rows: dict[str, records.Row] = {}
        self._entities: dict[str, Entity] = {}
        self._buried = 0
        self._buried_before = 0
        self._last = 0
        self._index = records.RecordIndex()
        self._alarms = Alarms[str]()
        self._before: dict[str, _Before] = {}
        self._users: dict[str, str] = {}
        self._shares = UserShares("records", _EACH, _TOGETHER, self._user_of)
        self._away: dict[str, dict[str, None]] = {}
        for row in rows:
            self._put(row)
            self._last = max(self._last, row.number)
        self.settle()

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, url: str) -> records.Row | None:
        """Return the record of an address, or None."""
        return self._rows.get(url)

    def deadline(self) -> float:
        """Return the time at which `tick` must be called next."""
        return self._alarms.deadline()

    def settle(self) -> None:
        """Note that all changes so far are stored durably, so that `revert` must not undo them."""
        self._before.clear()
        self._buried_before = self._buried

    def revert(self) -> None:
        """Undo the changes since the last `settle`, since they could not be written."""
        for url, (row, reported) in self._before.items():
            self._undo(url, row)
            self._entities.pop(url, None)
            if reported is not None:
                self._entities[url] = Entity.restore(REGISTRATION, *reported)
        self._before.clear()
        self._buried = self._buried_before

    def _user_of(self, runtime: str) -> str:
        return self._users.get(runtime, runtime)

    def _count(self, held: records.Row | None, row: records.Row | None) -> None:
        """Charge the users' limits when a record replaces the former record of its address."""
        if held is not None and held.status is State.DISCONNECTED:
            user = self._shares.user(held.runtime)
            del self._away[user][held.url]
            if not self._away[user]:
                del self._away[user]
        if row is not None:
            self._users.setdefault(row.runtime, _named_user(row))
            self._shares.take(row.runtime, 1, row.cost)
            if row.status is State.DISCONNECTED:
                self._away.setdefault(self._shares.user(row.runtime), {})[row.url] = None
        if held is not None:
            self._shares.take(held.runtime, -1, -held.cost)
            if held.runtime not in self._shares:
                self._users.pop(held.runtime, None)

    def _undo(self, url: str, row: records.Row | None) -> None:
        former = self._rows.pop(url, None)
        self._count(former, row)
        if row is not None:
            self._rows[url] = row
            self._index.replace(former, row)
            self._alarms.set(url, row.due)
        elif former is not None:
            self._index.remove(former)

    def answer(self, request: records.Request, now: float) -> records.Answered:
        """Execute a request to the registry and return its answer.

        Args:
            request: The request.
            now: Seconds since the epoch.
        """
        match request:
            case records.Create():
                return self._create(request, now)
            case records.Touch():
                return self._touch(request, now)
            case records.Read():
                return self._read(request, now)
            case records.Find():
                return self._search(request, now)

    def _create(self, asked: records.Create, now: float) -> records.Answered:
        held = self._rows.get(asked.url)
        live = State.LASTING if asked.is_lasting else State.LIVE
        wanted = State.CREATED if asked.value.get("status") == State.CREATED else live
        if held is not None:
            wanted = live if held.status is not State.CREATED else wanted
        number = self._last + 1 if held is None else held.number
        refusal = self._create_refusal(asked)
        if refusal is not None:
            return refusal
        row = records.Row(
            asked.url, asked.by, wanted, now, _with_status(asked.value, wanted), number
        )
        refusal = self._make_room(asked, held, row)
        if refusal is not None:
            return refusal
        if held is not None:
            self._change(attrs.evolve(held, runtime=asked.by), row)
            return records.OK
        self._last = number
        self._put(row)
        self._port.step(self._new_entity(asked.url).step(_WAY[wanted][0], "create"))
        self._keep(None, row)
        return records.OK

    def _keep(self, held: records.Row | None, row: records.Row) -> None:
        """Store a changed record, and report its status if the change is visible to others."""
        self._port.keep(row)
        former_status = None if held is None else records.status_for_others(held.status)
        after = records.status_for_others(row.status)
        if row.status in _VISIBLE and former_status != after:
            self._port.report_status(row.url, after)

    def _make_room(
        self, asked: records.Create, held: records.Row | None, row: records.Row
    ) -> records.Answered | None:
        """Remove disconnected records of the same user, oldest first, until a new record fits.

        No record is removed if that would not be enough.

        Returns:
            The refusal of the new record; None: it fits into the user's limits.
        """
        candidates = iter(self._away.get(self._user(asked), {}))
        removed: list[records.Row] = []
        while (refusal := self._share_refusal(asked, held, row, removed)) is not None:
            oldest = next((each for each in candidates if each != asked.url), None)
            if oldest is None or refusal.code is not Code.TOO_LARGE:
                return refusal
            removed.append(self._rows[oldest])
        for row_away in removed:
            self._bury(row_away, "its user registers others")
        return None

    def _user(self, asked: records.Create | records.Touch) -> str:
        """Return the user to whose limits the records of a session are charged."""
        is_known = asked.by in self._shares
        return self._shares.user(asked.by) if is_known else next(iter(asked.users or ()), asked.by)

    def _create_refusal(self, asked: records.Create) -> records.Answered | None:
        held = self._rows.get(asked.url)
        is_new = held is None or held.runtime != asked.by
        if is_new and self._index.count(records.By.RUNTIME, asked.by) >= MAX_RECORDS:
            return records.Answered(Code.TOO_LARGE, _MANY)
        if held is None and len(self._rows) >= MAX_DOMAIN_RECORDS:
            return records.Answered(Code.UNAVAILABLE, _FULL)
        return records.create_refusal(asked, None if held is None else held.runtime)

    def _share_refusal(
        self,
        asked: records.Create | records.Touch,
        held: records.Row | None,
        row: records.Row,
        removed: Sequence[records.Row] = (),
    ) -> records.Answered | None:
        """Return the refusal of a record that exceeds its user's limits, or None.

        The records in `removed` no longer count, since the caller would remove them.
        """
        runtime = asked.by
        is_new = held is None or held.runtime != runtime
        if runtime not in self._shares:
            self._users[runtime] = self._user(asked)
        growth = row.cost - (0 if held is None or is_new else held.cost)
        freed = sum(each.cost for each in removed)
        refusal = self._shares.refusal(runtime, int(is_new) - len(removed), growth - freed)
        if refusal is None:
            return None
        if runtime not in self._shares:
            del self._users[runtime]
        return records.Answered(refusal.code, refusal.why)

    def _touch(self, asked: records.Touch, now: float) -> records.Answered:
        held = self._rows.get(asked.url)
        if held is None:
            return records.UNKNOWN
        old_value = held.value
        value = {**old_value, **asked.fields}
        refusal = records.touch_refusal(asked, {**old_value, "runtime": held.runtime})
        if refusal is None and asked.fields:
            refusal = records.size_refusal(value)
        if refusal is not None:
            return refusal
        wanted = records.wanted_state(held.status, asked.fields)
        if wanted is None:
            return records.NO_SUCH_STATUS
        if wanted in _WAYS_TO_LIVE:
            wanted = State.LASTING if asked.is_lasting else State.LIVE
        row = _changed_row(held, wanted, value, now)
        refusal = self._share_refusal(asked, held, row)
        if refusal is not None and row.cost > held.cost:
            return refusal
        self._change(held, row)
        return records.OK

    def _change(self, held: records.Row, row: records.Row) -> None:
        self._put(row)
        if row.status is not held.status:
            trigger = _WAYS_TO_LIVE.get(row.status, Trigger.DISCONNECT)
            self._step(held, trigger, "update" if row.is_live else "unregister")
        self._keep(held, row)

    def _read(self, asked: records.Read, now: float) -> records.Answered:
        held = self._rows.get(asked.url)
        if held is None or held.status not in _VISIBLE:
            return records.UNKNOWN
        is_live = _is_live(held, now)
        return asked.answer(held.value if is_live else _shown_away(held), is_live=is_live)

    def _search(self, asked: records.Find, now: float) -> records.Answered:
        search, after = asked.search, asked.after
        try:
            start = None if after is None else records.Cursor.read(after, search)
        except BadMessageError as exc:
            return records.Answered(exc.code, exc.reason)
        if start is not None:
            return self._page(asked, start, now)
        live = self._page(asked, records.Cursor.first(search, is_live=True), now)
        if live.value:
            return live
        away = self._page(asked, records.Cursor.first(search, is_live=False), now)
        return away if away.value else records.UNKNOWN

    def _page(self, asked: records.Find, start: records.Cursor, now: float) -> records.Answered:
        search, is_live = asked.search, start.is_live
        lanes = (
            (runtime, partial(self._older, search, entries, is_live=is_live, now=now))
            for runtime, entries in self._index.find(search.by, search.value).items()
        )
        page, after = records.page_of(lanes, start, asked.limit)
        code, why = (Code.OK, "") if is_live else (Code.TIMEOUT, records.AWAY)
        return records.Answered(code, why, [*page], after and after.text)

    def _older(
        self,
        search: records.Search,
        entries: Sequence[records.Entry],
        below: int,
        *,
        is_live: bool,
        now: float,
    ) -> Iterator[records.Found]:
        """Yield the matching records of a session with numbers below `below`, newest first."""
        for place in range(bisect_left(entries, (below,)) - 1, -1, -1):
            row = self._rows[entries[place][1]]
            if row.status not in _VISIBLE or _is_live(row, now) is not is_live:
                continue
            value = row.value if is_live else _shown_away(row)
            if search.accepts(row.url, value):
                yield row.number, value

    def leave(self, runtime: str, why: str, now: float, *, is_final: bool) -> None:
        """Mark the records of a runtime whose session has ended as disconnected.

        Records that outlive their session are not changed.

        Args:
            runtime: Address of the runtime.
            why: The reason, as half a sentence.
            now: Seconds since the epoch.
            is_final: Whether the runtime cannot come back; its records are then removed.
        """
        for url in self._index.urls(records.By.RUNTIME, runtime):
            if self._rows[url].status is State.LIVE:
                self._disconnect(self._rows[url], why, now)
            held = self._rows[url]
            is_over = is_final and held.status is State.DISCONNECTED
            if is_over or held.status is State.CREATED:
                self._bury(held, why)

    def _disconnect(self, held: records.Row, why: str, now: float) -> None:
        row = _changed_row(held, State.DISCONNECTED, held.value, now)
        self._put(row)
        self._step(held, Trigger.DISCONNECT, why)
        self._keep(held, row)

    def tick(self, now: float) -> None:
        """Disconnect or remove the records that have received no keep-alive in time."""
        for url in self._alarms.due(now):
            held = self._rows.get(url)
            if held is None:
                continue
            if held.due > now:
                self._alarms.set(url, held.due)
            elif self._is_ours is not None and not self._is_ours(url):
                # Another node handles the expiry; if that node ends, this node may take over later.
                self._alarms.set(url, now + RECORD_RETRY)
            elif held.is_live:
                self._disconnect(held, "expired", now)
            else:
                self._bury(held, "its runtime did not return")

    def mirror(self, url: str, row: records.Row | None) -> None:
        """Copy a change of a record that another node of the domain has made.

        That node has stored and reported the change, so this node at most traces it.

        Args:
            url: Address of the record.
            row: The changed record; None: the record is removed.
        """
        held, entity = self._rows.pop(url, None), self._entities.get(url)
        self._count(held, row)
        self._before.pop(url, None)
        if row is None:
            if held is not None:
                self._index.remove(held)
            if entity is not None:
                self._bury_elsewhere(url, entity)
            return
        self._rows[url] = row
        self._last = max(self._last, row.number)
        self._index.replace(held, row)
        self._alarms.set(url, row.due)
        if entity is not None and entity.state not in {row.status, State.CREATED, State.DEAD}:
            trigger = _WAYS_TO_LIVE.get(row.status, Trigger.DISCONNECT)
            self._port.step(entity.step(trigger, _ELSEWHERE))

    def _bury_elsewhere(self, url: str, entity: Entity) -> None:
        del self._entities[url]
        self._buried += 1
        if entity.state in {State.LIVE, State.LASTING}:
            self._port.step(entity.step(Trigger.DISCONNECT, _ELSEWHERE))
        self._port.step(entity.step(Trigger.BURY, _ELSEWHERE))

    def rest(self) -> None:
        """Trace that all records end here: this node leaves, and other nodes serve the records."""
        for entity in self._entities.values():
            if entity.state in {State.LIVE, State.CREATED}:
                is_live = entity.state is State.LIVE
                trigger = Trigger.DISCONNECT if is_live else Trigger.BURY
                self._port.step(entity.step(trigger, _RESTS))
        self._entities.clear()

    def _bury(self, held: records.Row, why: str) -> None:
        self._note(held.url)
        self._step(held, Trigger.BURY, why)
        self._index.remove(held)
        self._count(held, None)
        del self._rows[held.url], self._entities[held.url]
        self._buried += 1
        self._port.forget(held.url)

    def _note(self, url: str) -> None:
        """Remember the state of an address before its change, for `revert`."""
        if url not in self._before:
            entity = self._entities.get(url)
            reported = None if entity is None else (entity.key, State(str(entity.state)))
            self._before[url] = self._rows.get(url), reported

    def _put(self, row: records.Row) -> None:
        self._note(row.url)
        held = self._rows.get(row.url)
        self._rows[row.url] = row
        self._count(held, row)
        self._index.replace(held, row)
        self._alarms.set(row.url, row.due)

    def _new_entity(self, url: str) -> Entity:
        # A record that is created again after its removal needs a new key in the trace.
        key = f"{url}|{self._buried + 1}" if self._buried else url
        entity = self._entities[url] = Entity(REGISTRATION, key)
        return entity

    def _step(self, held: records.Row, trigger: Trigger, why: str) -> None:
        """Trigger a transition of a record's state machine.

        For a record of an earlier process, the transitions to its stored state are traced first.
        """
        entity = self._entities.get(held.url)
        if entity is None:
            entity = self._new_entity(held.url)
            for trigger_before in _WAY[held.status]:
                self._port.step(entity.step(trigger_before, records.KEPT))
        self._port.step(entity.step(trigger, why))


_WAY: Final = {
    State.CREATED: (Trigger.CREATE,),
    State.LIVE: (Trigger.CREATE_LIVE,),
    State.LASTING: (Trigger.CREATE_LASTING,),
    State.DISCONNECTED: (Trigger.CREATE_LIVE, Trigger.DISCONNECT),
}
"""The shortest sequence of triggers that leads to each state of a stored record."""

_ELSEWHERE: Final = "another node of the domain has changed it"
_RESTS: Final = "this node leaves; the record is with the others of the domain"

_WAYS_TO_LIVE: Final = {State.LIVE: Trigger.SET_LIVE, State.LASTING: Trigger.SET_LASTING}


def _named_user(row: records.Row) -> str:
    user = row.value.get("user")
    return user if isinstance(user, str) else row.runtime


def _changed_row(held: records.Row, status: State, value: JsonObject, now: float) -> records.Row:
    return attrs.evolve(held, status=status, touched=now, value=_with_status(value, status))


def _with_status(value: JsonObject, status: State) -> JsonObject:
    return {**value, "status": records.status_for_others(status).value}


def _shown_away(row: records.Row) -> JsonObject:
    return {**row.value, "status": State.DISCONNECTED.value}


def _is_live(row: records.Row, now: float) -> bool:
    """Return whether a record counts as live: it is marked live and has not expired yet."""
    return row.is_live and now < row.due
