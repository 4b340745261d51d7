"""The claims as a page: what each says, what it needs, and where it is checked."""

from collections.abc import Iterator
from typing import Final

from fsm.judge.claims.catalogue import BY_MACHINES, CLAIMS_JUDGED, NOT_JUDGED
from fsm.judge.claims.fold import Fold, GroupKey
from fsm.judge.online import MONITORED
from specs.claims import CATALOGUE, Claim

__all__ = ["claims_page"]

_HEAD: Final = """\
# Claims

What holds in every run of the protocol. This page is the output of `python -m spark claims`.

Class: S is judged on any prefix of a trace, L needs the end or a clock, X needs the traces of
several processes, hyper compares two runs. Records: the kind, then operations, machines or
tables. Key: what the records have in common that one fold sees; a runtime is one run of one
process, also of a message node. The judges are `python -m fsm judge` and
`python -m spark validate`: they check the same claims by the same folds. The monitor of a process
checks the claims on steps while it runs. With the option `--monitor` it also checks the claims
marked so, of its own records: those of answers for every tenth request.

| id | claim | class | place | records | key | checked by |
|---|---|---|---|---|---|---|
"""


def claims_page() -> str:
    """Return the page, in Markdown."""
    return _HEAD + "".join(f"| {' | '.join(_row(claim))} |\n" for claim in CATALOGUE)


def _row(claim: Claim) -> tuple[str, ...]:
    plain = claim.id, claim.text.replace("|", "\\|"), claim.reach.value
    machine = BY_MACHINES.get(claim.id)
    if machine is not None:
        where = "monitor, fsm judge, spark, fsm check --product"
        return (*plain, "any process", f"state {machine}", GroupKey.ENTITY.value, where)
    folds = CLAIMS_JUDGED.get(claim.id)
    if folds is None:
        return (*plain, "", "", "", f"nobody: {NOT_JUDGED[claim.id]}")
    is_monitored = any(fold in MONITORED for fold in folds)
    where = "monitor with --monitor, fsm judge, spark" if is_monitored else "fsm judge, spark"
    places = _joined(fold.place.value for fold in folds)
    return (*plain, places, _records(folds), _keys(claim.id, folds), where)


def _records(folds: tuple[type[Fold], ...]) -> str:
    """Return which records the folds need, in words."""
    needed: dict[tuple[str, bool], set[str]] = {}
    for route in (one for fold in folds for _, routes in fold.methods for one in routes):
        names = needed.setdefault((route.kind.value, route.is_at_bus), set())
        names |= route.names or {"all"}
    return _joined(
        f"{kind} {_all_or(names)}{' at the bus' if is_at_bus else ''}"
        for (kind, is_at_bus), names in needed.items()
    )


def _all_or(names: set[str]) -> str:
    return "all" if "all" in names else ", ".join(sorted(names))


def _keys(claim: str, folds: tuple[type[Fold], ...]) -> str:
    across = (one for fold in folds for one in fold.across if claim in one.claims)
    return _joined([GroupKey.PROCESS.value, *(one.key.value for one in across)])


def _joined(words: Iterator[str] | list[str]) -> str:
    return "; ".join(dict.fromkeys(words))
