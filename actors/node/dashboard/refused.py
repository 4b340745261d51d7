"""What a node refused and dropped, as rows that people search."""

from collections.abc import Iterable
from typing import Final, final

import attrs

from actors.kit.counters import Counters, Drop, Refused
from specs.jsonvalue import Json, JsonObject
from specs.limits.dashboard import TEXT_CHARS

_NANO: Final = 1e9


@final
@attrs.frozen
class Wanted:
    """What somebody looks for.

    Attributes:
        id: Id of a message; empty: any.
        text: Part of the address of a sender, a receiver or a session; empty: any.
    """

    id: str
    text: str

    def among(self, counters: Counters, limit: int) -> JsonObject:
        """Return the refusals and drops of a process that are looked for, the newest first.

        Args:
            counters: Its counters.
            limit: Number of rows of each at most.
        """
        refusals = (_refusal(one) for one in reversed(counters.refusals()))
        drops = (_drop(one) for one in reversed(counters.ledger().last))
        return {
            "refusals": self._found(refusals)[:limit],
            "drops": self._found(drops)[:limit],
        }

    def _found(self, rows: Iterable[JsonObject]) -> list[Json]:
        return [row for row in rows if self._has_text(row) and self.id in {"", str(row["id"])}]

    def _has_text(self, row: JsonObject) -> bool:
        ends = (row.get("from"), row.get("to"), row.get("by"))
        return not self.text or any(isinstance(end, str) and self.text in end for end in ends)


def _refusal(one: Refused) -> JsonObject:
    return {
        **_row(one),
        "by": one.by,
        "code": int(one.code),
        "ground": str(one.ground),
        "why": one.why,
        "rule": one.rule,
    }


def _drop(one: Drop) -> JsonObject:
    return {**_row(one), "reason": str(one.reason)}


def _row(one: Refused | Drop) -> JsonObject:
    return {
        "at": one.wall_ns / _NANO,
        "where": one.where,
        "id": one.id,
        "type": str(one.type),
        "from": one.from_[:TEXT_CHARS],
        "to": one.to[:TEXT_CHARS],
    }
