"""The records of a domain registry: who may change them, how long they live, who finds them.

Decides on records that are in memory; the host makes each `Keep` and `Forget` durable
before it lets out what follows it (I-G3). Times are seconds since the epoch, because
records outlive the process. Expiry is by keep-alive (I-G4); a change of status that
others can see is told (I-G5).
"""

from collections.abc import Iterable
from typing import Final, assert_never, final

from fsm.cores.alarms import Alarms
from fsm.cores.record_index import By, RecordIndex, Search
from fsm.cores.registration_terms import (
    Answered,
    Create,
    Effect,
    Find,
    Forget,
    Input,
    Keep,
    Leave,
    Read,
    Row,
    StatusChanged,
    Tick,
    Touch,
)
from fsm.engine import Entity, Step
from fsm.machines.registration import REGISTRATION, State, Trigger
from specs.address import is_below
from specs.jsonvalue import Json, JsonObject
from specs.reply_code import Code

__all__ = ["RegistrationCore"]

_KEPT: Final = "kept from before the node started"
_AWAY: Final = "Temporarily Unavailable"
_TOLD: Final = frozenset({State.LIVE, State.DISCONNECTED})


_OK: Final = Answered(Code.OK)
_UNKNOWN: Final = Answered(Code.NOT_FOUND, "Not Found")


@final
class RegistrationCore:
    """The records of one domain.

    Args:
        rows: What was kept from before.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: dict[str, Row] = {}
        self._entities: dict[str, Entity] = {}
        self._buried: dict[str, int] = {}
        self._index = RecordIndex()
        self._alarms = Alarms()
        for row in rows:
            self._put(row)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, url: str) -> Row | None:
        """Return the row of an address."""
        return self._rows.get(url)

    def deadline(self) -> float:
        """Return when a `Tick` is due."""
        return self._alarms.deadline()

    def feed(self, happened: Input, now: float) -> list[Effect]:
        """Decide."""
        match happened:
            case Create():
                return self._create(happened, now)
            case Touch():
                return self._touch(happened, now)
            case Read() | Find():
                return [self._read(happened)]
            case Leave(runtime, why):
                return self._leave(runtime, why, now)
            case Tick():
                return self._tick(now)
            case _:
                assert_never(happened)

    def _create(self, asked: Create, now: float) -> list[Effect]:
        refusal = self._create_refusal(asked)
        if refusal is not None:
            return [refusal]
        held = self._rows.get(asked.url)
        wanted = State.CREATED if asked.value.get("status") == State.CREATED else State.LIVE
        if held is not None:
            return [*self._change(held, wanted, asked.value, now), _OK]
        trigger = Trigger.CREATE if wanted is State.CREATED else Trigger.CREATE_LIVE
        row = Row(asked.url, asked.by, wanted, now, {**asked.value, "status": wanted.value})
        self._put(row)
        step = self._new_entity(asked.url).step(trigger, "create")
        return [step, Keep(row), *_told(asked.url, wanted), _OK]

    def _create_refusal(self, asked: Create) -> Answered | None:
        held = self._rows.get(asked.url)
        if asked.owner != asked.by or (held is not None and held.runtime != asked.by):
            return Answered(Code.FORBIDDEN, f"the session does not own {asked.url}")
        if asked.value.get("runtime") != asked.by:
            return Answered(Code.FORBIDDEN, "the record names another runtime")
        handler = asked.value.get("p2pHandler")
        if isinstance(handler, str) and not is_below(handler, asked.by):
            return Answered(Code.FORBIDDEN, "the P2P handler is not the runtime's own")
        return None

    def _touch(self, asked: Touch, now: float) -> list[Effect]:
        held = self._rows.get(asked.url)
        if held is None:
            return [_UNKNOWN]
        if held.runtime != asked.by:
            return [Answered(Code.FORBIDDEN, "not the owner")]
        for name in ("url", "runtime"):
            if asked.fields.get(name, held.value.get(name)) != held.value.get(name):
                return [Answered(Code.MALFORMED, f"the {name} of a record does not change")]
        wanted = _wanted(held.status, asked.fields)
        if wanted is None:
            return [Answered(Code.MALFORMED, "a record is set live or disconnected")]
        return [*self._change(held, wanted, {**held.value, **asked.fields}, now), _OK]

    def _change(self, held: Row, wanted: State, value: JsonObject, now: float) -> list[Effect]:
        if wanted is State.CREATED and held.status is not State.CREATED:
            wanted = State.LIVE
        row = Row(held.url, held.runtime, wanted, now, {**value, "status": wanted.value})
        self._put(row)
        if wanted is held.status:
            return [Keep(row)]
        trigger = Trigger.SET_LIVE if wanted is State.LIVE else Trigger.DISCONNECT
        why = "update" if wanted is State.LIVE else "unregister"
        steps = self._step(held, trigger, why)
        return [*steps, Keep(row), *_told(held.url, wanted)]

    def _read(self, asked: Read | Find) -> Answered:
        if isinstance(asked, Read):
            held = self._rows.get(asked.url)
            seen = [held] if held is not None and held.status in _TOLD else []
        else:
            seen = self._found(asked.search)
        live: list[Json] = [row.value for row in seen if row.status is State.LIVE]
        if live:
            return Answered(Code.OK, value=live[0] if isinstance(asked, Read) else live)
        away: list[Json] = [row.value for row in seen]
        return Answered(Code.TIMEOUT, _AWAY, away) if away else _UNKNOWN

    def _found(self, search: Search) -> list[Row]:
        rows = [self._rows[url] for url in self._index.find(search.by, search.value)]
        return [row for row in rows if row.status in _TOLD and search.accepts(row.url, row.value)]

    def _leave(self, runtime: str, why: str, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for url in self._index.find(By.RUNTIME, runtime):
            held = self._rows[url]
            if held.status is State.LIVE:
                effects += self._disconnect(held, why, now)
            elif held.status is State.CREATED:
                effects += self._bury(held, why)
        return effects

    def _disconnect(self, held: Row, why: str, now: float) -> list[Effect]:
        value = {**held.value, "status": State.DISCONNECTED.value}
        row = Row(held.url, held.runtime, State.DISCONNECTED, now, value)
        self._put(row)
        steps = self._step(held, Trigger.DISCONNECT, why)
        return [*steps, Keep(row), StatusChanged(row.url, row.status)]

    def _tick(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for url in self._alarms.due(now):
            held = self._rows.get(url)
            if held is None:
                continue
            if held.due > now:
                self._alarms.set(url, held.due)
            elif held.status is State.LIVE:
                effects += self._disconnect(held, "expired", now)
            else:
                effects += self._bury(held, "nobody came back")
        return effects

    def _bury(self, held: Row, why: str) -> list[Effect]:
        steps = self._step(held, Trigger.BURY, why)
        self._index.remove(held.url, held.value)
        del self._rows[held.url], self._entities[held.url]
        self._buried[held.url] = self._buried.get(held.url, 0) + 1
        return [*steps, Forget(held.url)]

    def _put(self, row: Row) -> None:
        held = self._rows.get(row.url)
        if held is not None:
            self._index.remove(row.url, held.value)
        self._rows[row.url] = row
        self._index.add(row.url, row.value)
        self._alarms.set(row.url, row.due)

    def _new_entity(self, url: str) -> Entity:
        lives = self._buried.get(url, 0)
        key = f"{url}|{lives + 1}" if lives else url
        entity = self._entities[url] = Entity(REGISTRATION, key)
        return entity

    def _step(self, held: Row, trigger: Trigger, why: str) -> list[Step]:
        """Follow a row of the machine; first tell what happened in another process."""
        entity = self._entities.get(held.url)
        told: list[Step] = []
        if entity is None:
            entity = self._new_entity(held.url)
            told = [entity.step(one, _KEPT) for one in _WAY[held.status]]
        return [*told, entity.step(trigger, why)]


_WAY: Final = {
    State.CREATED: (Trigger.CREATE,),
    State.LIVE: (Trigger.CREATE_LIVE,),
    State.DISCONNECTED: (Trigger.CREATE_LIVE, Trigger.DISCONNECT),
}
"""The shortest way to each state a kept row can be in."""


def _wanted(status: State, fields: JsonObject) -> State | None:
    """Return the state an update asks for; None if it may not ask for that."""
    named = fields.get("status")
    if named is None:
        return State.LIVE if status is State.DISCONNECTED else status
    if named == State.LIVE:
        return State.LIVE
    if named == State.DISCONNECTED and status is not State.CREATED:
        return State.DISCONNECTED
    return None


def _told(url: str, status: State) -> list[StatusChanged]:
    return [StatusChanged(url, status)] if status in _TOLD else []
