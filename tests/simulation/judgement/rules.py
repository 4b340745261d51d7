"""What an end-to-end history must keep: the guarantees, as an application sees them.

| rule | says |
|---|---|
| `acknowledged` | a 200 means that the hyperty asked was given the request |
| `once` | no request is given to a hyperty twice, whatever way it came (I-P22) |
| `addressee` | only who was asked is given a request, and an answer is to its own request (I-T1) |
| `order` | what one hyperty asks another is given in the order it was asked (I-B7) |
| `answered` | every request has an answer, a made one at the latest when patience ends (I-T3) |
| `after_leaving` | nothing of an object comes after the unsubscribe was acknowledged (I-D7) |
| `versions` | an observer hears of each change at most once, and in order (I-D3, I-D12) |
| `agreed` | when all is well again, every copy, with children, is what its reporter has (I-D4) |
| `children` | when all is well again, each child is there that was acknowledged, once (I-D10) |
| `converged` | when all is well again, everybody reaches everybody |
| `shared` | when all is well again, all nodes of a domain know what the rows of its engine say |
| `clean` | when everybody has gone, no link and no listener is left (I-X2) |

Of a request that is answered otherwise than 200 (404, 408, 503 and so on) only this is
said: it is given at most once, and in order. Who dies waits for nothing any more.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final

import attrs

from specs.limits.protocol import REPLY_TIMEOUT
from specs.reply_code import Code
from tests.simulation.judgement.history import (
    Answered,
    Asked,
    Created,
    Died,
    Executed,
    Heard,
    Held,
    History,
    Left,
    Observing,
    Overheard,
    Probed,
    Removed,
)

_PATIENCE: Final = REPLY_TIMEOUT + 1.0
"""Seconds after which a request must have its answer, at the latest."""


@attrs.frozen
class Breach:
    """A rule that was broken, and by what.

    Attributes:
        rule: Its name.
        what: What was seen, for people.
    """

    rule: str
    what: str


def _asked(history: History) -> dict[int, Asked]:
    return {one.number: one for one in history.remarks if isinstance(one, Asked)}


def _executed(history: History) -> dict[int, list[Executed]]:
    found: defaultdict[int, list[Executed]] = defaultdict(list)
    for one in history.remarks:
        if isinstance(one, Executed):
            found[one.number].append(one)
    return found


def _acknowledged(history: History) -> Iterator[str]:
    executed = _executed(history)
    for one in history.remarks:
        if isinstance(one, Answered) and one.code == Code.OK and one.number not in executed:
            yield f"request {one.number} was answered 200, and given to nobody"


def _once(history: History) -> Iterator[str]:
    for number, given in _executed(history).items():
        if len(given) > 1:
            times = ", ".join(f"{one.at:.3f}" for one in given)
            yield f"request {number} was given to {given[0].by} at {times}"


def _addressee(history: History) -> Iterator[str]:
    asked = _asked(history)
    for one in history.remarks:
        if isinstance(one, Executed) and asked[one.number].to != one.by:
            yield f"request {one.number} to {asked[one.number].to} was given to {one.by}"
        if isinstance(one, Answered) and one.code == Code.OK and one.value != one.number:
            yield f"request {one.number} was answered as if it were {one.value}"


def _order(history: History) -> Iterator[str]:
    asked = _asked(history)
    pairs: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for one in history.remarks:
        if isinstance(one, Executed):
            pairs[asked[one.number].by, one.by].append(one.number)
    rank = {number: place for place, number in enumerate(asked)}
    for (by, to), numbers in pairs.items():
        for before, after in pairwise(numbers):
            if rank[after] < rank[before]:
                yield f"{by} asked {to} {after} before {before}, which was given first"


def _answered(history: History) -> Iterator[str]:
    ends = {one.number: one.at for one in history.remarks if isinstance(one, Answered)}
    died = {one.by: one.at for one in history.remarks if isinstance(one, Died)}
    over = history.remarks[-1].at if history.remarks else 0.0
    for one in _asked(history).values():
        life = one.by.partition("/")[0]
        until = ends.get(one.number, died.get(life, over))
        is_open = one.number not in ends and life not in died
        if is_open or until > one.at + _PATIENCE:
            how = "has no answer" if is_open else f"had none for {until - one.at:.3f} s"
            yield f"request {one.number} of {one.by} at {one.at:.3f} {how}"


def _after_leaving(history: History) -> Iterator[str]:
    left: dict[tuple[str, str], float] = {}
    for one in history.remarks:
        if isinstance(one, Observing):
            left.pop((one.by, one.url), None)
        elif isinstance(one, Left):
            left[one.by, one.url] = one.at
        elif isinstance(one, Heard | Overheard) and (one.by, one.url) in left:
            yield f"{one.by} left {one.url} and heard version {one.version} of it"


def _versions(history: History) -> Iterator[str]:
    last: dict[tuple[str, str], tuple[int, set[str]]] = {}
    for one in history.remarks:
        if isinstance(one, Observing):
            last.pop((one.by, one.url), None)
        elif isinstance(one, Heard):
            before, paths = last.get((one.by, one.url), (0, set()))
            if one.version < before or (one.version == before and one.path in paths):
                notices = f"version {one.version} of {one.url}, {one.path!r}"
                yield f"{one.by} heard of {notices}, after {before}"
            known = paths if one.version == before else set()
            last[one.by, one.url] = one.version, known | {one.path}


def _agreed(history: History) -> Iterable[str]:
    return disagreements([one for one in history.remarks if isinstance(one, Held)])


def disagreements(held: Iterable[Held]) -> list[str]:
    """Say which copies are not what their reporters have."""
    return list(_disagreements(list(held)))


def _disagreements(held: list[Held]) -> Iterator[str]:
    reported = {one.url: one for one in held if one.is_reporter}
    for copy in held:
        newest = reported.get(copy.url)
        if newest is None:
            yield f"{copy.by} has version {copy.version} of {copy.url}, which nobody reports"
        elif _shown(copy) != _shown(newest):
            mine, its = " ".join(_shown(copy)), " ".join(_shown(newest))
            yield f"{copy.by} has of {copy.url} {mine}, and {newest.by}, who reports it, {its}"


def _shown(held: Held) -> tuple[str, str, str]:
    return str(held.version), held.value, held.children


def _children(history: History) -> Iterator[str]:
    removed = {one.child for one in history.remarks if isinstance(one, Removed)}
    created = [one for one in history.remarks if isinstance(one, Created)]
    for held in (one for one in history.remarks if isinstance(one, Held)):
        there = json.loads(held.children)
        for one in created if held.is_reporter else ():
            if one.url == held.url and one.child not in {*there, *removed}:
                yield f"{one.by} created {one.child} of {one.url}, and it is not there"
        numbers = Counter(str(value).partition("/")[0] for value in there.values())
        twice = [number for number, times in numbers.items() if times > 1]
        yield from (f"{held.url} has several children created as {number}" for number in twice)


def _converged(history: History) -> Iterator[str]:
    for one in history.remarks:
        if isinstance(one, Probed) and one.code != Code.OK:
            yield f"all is well, and {one.by} asks {one.to}: {one.code or 'no answer'}"


def _shared(history: History) -> Iterable[str]:
    return history.different


def _clean(history: History) -> Iterable[str]:
    return [f"{what} is left" for what in history.left_over]


RULES: Final[dict[str, Callable[[History], Iterable[str]]]] = {
    "acknowledged": _acknowledged,
    "once": _once,
    "addressee": _addressee,
    "order": _order,
    "answered": _answered,
    "after_leaving": _after_leaving,
    "versions": _versions,
    "agreed": _agreed,
    "children": _children,
    "converged": _converged,
    "shared": _shared,
    "clean": _clean,
}
"""By name."""


def breaches(history: History) -> tuple[Breach, ...]:
    """Hold a history against all rules."""
    return tuple(Breach(name, what) for name, rule in RULES.items() for what in rule(history))
