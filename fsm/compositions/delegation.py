"""An object changes hands: two ends, a node between them, and networks that lose and repeat.

Who meets: both cores of `fsm.sync.delegation`, and `fsm.registry.address_offers` at the
node. What may happen: any message is lost or comes twice; any answer is missing, or comes
after it was given up; either runtime crashes at any time, and the node then lets go of
what it had. Whatever it is: never do two write, and who writes owns the address.

Left out, and why that is no loss:

* The question to the other hyperty and its parts: one message hands the object over. What
  is lost of several is lost of one.
* Both in one runtime: that is one step of one process.
* A node that forgets everything: then only time tells (`HAND_OVER_GRACE`), and a
  composition has none.
* More attempts than one: an offer's number only ever rises, so that a later one is as new.
* Answers carry no numbers. That they are only taken where they are waited for is in the rules.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from fsm.machines.object_delegation import Trigger as Give
from fsm.machines.object_take_over import Trigger as Take
from fsm.product.bounds import Bounds
from fsm.product.composition import (
    Channel,
    Composition,
    End,
    Message,
    Never,
    Part,
    Plan,
    Variable,
    Wish,
)
from fsm.product.rule import (
    Rule,
    act,
    after,
    begin,
    got,
    happens,
    ignore,
    move,
    rules,
    send,
    wished,
)
from fsm.table import Table

__all__ = ["DELEGATION_PLAN", "compose"]

ASKS: Final = "to the node, of the old end"
TOLD: Final = "of the node, to the old end"
TAKES: Final = "to the node, of the new end"
GIVEN: Final = "of the node, to the new end"
HANDS: Final = "to the new end"
BACK: Final = "of the new end"

BEGIN: Final = "the reporter hands its object over"
OLD_CRASHES: Final = "the old runtime crashes"
NEW_CRASHES: Final = "the new runtime crashes"

_OBJECT: Final = "comm://a.ex/o"
_KEY: Final = f"{_OBJECT}|hyperty://a.ex/h2|1"

_MESSAGES: Final = (
    "offer", "withdraw", "noted", "no offer", "stays", "gone", "unknown",
    "take", "yours", "not yours", "ask", "agreed", "refused", "hand", "taken", "not taken",
)  # fmt: skip

_OLD: Final = {"old runtime": "up"}
_NEW: Final = {"new runtime": "up"}


def _rules() -> Iterator[Rule]:
    yield from _asking()
    yield from _node()
    yield from _giving()
    yield from _taking()
    yield from _crashes()


def _asking() -> Iterator[Rule]:
    first = act(_OLD, begin("giving", Give.ASK), send(HANDS, "ask"))
    yield from rules(wished(BEGIN), (first,), "M-54")
    answers = (act(_NEW, send(BACK, "agreed")), act(_NEW, send(BACK, "refused")))
    dead = ignore({"new runtime": "down"}, "nobody is there")
    yield from rules(got(HANDS, "ask"), (*answers, dead), "M-54 forward")


def _node() -> Iterator[Rule]:
    """What the node decides: an offer that is over is never open again."""
    mine = {"owner": "old"}
    offers = (
        act({**mine, "offer": "none|open"}, send(TOLD, "noted"), sets={"offer": "open"}),
        act({**mine, "offer": "over"}, send(TOLD, "no offer")),
        act({"owner": "not old"}, send(TOLD, "no offer")),
    )
    yield from rules(got(ASKS, "offer"), offers, "fsm.registry.address_offers")
    backs = (
        act(mine, send(TOLD, "stays"), sets={"offer": "over"}),
        act({"owner": "new"}, send(TOLD, "gone")),
        act({"owner": "nobody"}, send(TOLD, "unknown")),
    )
    yield from rules(got(ASKS, "withdraw"), backs, "fsm.registry.address_offers")
    open_ = {**mine, "offer": "open"}
    takes = (
        act(open_, send(GIVEN, "yours"), sets={"owner": "new", "offer": "over"}),
        act({**mine, "offer": "not open"}, send(GIVEN, "not yours")),
        act({"owner": "new"}, send(GIVEN, "yours")),
        act({"owner": "nobody"}, send(GIVEN, "not yours")),
    )
    yield from rules(got(TAKES, "take"), takes, "fsm.registry.address_offers")


def _at_old(
    channel: str, message: str, state: str, trigger: Give, *answers: tuple[str, str]
) -> Iterator[Rule]:
    sends = tuple(send(*one) for one in answers)
    taken = act({**_OLD, "giving": state}, move("giving", trigger), *sends)
    late = ignore({**_OLD, "giving": f"not {state}"}, "it is not waited for any more")
    dead = ignore({"old runtime": "down"}, "nobody is there")
    yield from rules(got(channel, message), (taken, late, dead), "fsm.sync.delegation")


def _giving() -> Iterator[Rule]:
    withdraw = (ASKS, "withdraw")
    yield from _at_old(BACK, "agreed", "asked", Give.AGREE, (ASKS, "offer"))
    yield from _at_old(BACK, "refused", "asked", Give.REFUSE)
    yield from _at_old(TOLD, "noted", "offered", Give.NOTED, (HANDS, "hand"))
    yield from _at_old(TOLD, "no offer", "offered", Give.REFUSE, withdraw)
    yield from _at_old(BACK, "taken", "handing", Give.TAKEN)
    yield from _at_old(BACK, "not taken", "handing", Give.DOUBT, withdraw)
    yield from _at_old(TOLD, "stays", "doubtful", Give.STAYS)
    yield from _at_old(TOLD, "gone", "doubtful", Give.TAKEN)
    yield from _at_old(TOLD, "unknown", "doubtful", Give.LOSE)
    silent = (
        act({**_OLD, "giving": "asked"}, move("giving", Give.REFUSE)),
        act({**_OLD, "giving": "offered"}, move("giving", Give.REFUSE), send(*withdraw)),
    )
    yield from rules(after("giving", Give.REFUSE), silent, "M-54: nothing is no")
    doubts = act({**_OLD, "giving": "handing"}, move("giving", Give.DOUBT), send(*withdraw))
    yield from rules(after("giving", Give.DOUBT), (doubts,), "fsm.sync.delegation")
    again = act(
        {**_OLD, "giving": "doubtful", ASKS: "empty", TOLD: "empty"},
        move("giving", Give.AGAIN),
        send(*withdraw),
    )
    yield from rules(after("giving", Give.AGAIN), (again,), "fsm.sync.delegation")


def _taking() -> Iterator[Rule]:
    first = act({**_NEW, "taking": "[*]"}, begin("taking", Take.TAKE), send(TAKES, "take"))
    hands = (
        first,
        act({**_NEW, "taking": "taken"}, send(BACK, "taken")),
        act({**_NEW, "taking": "dropped"}, send(BACK, "not taken")),
        ignore({**_NEW, "taking": "taking"}, "the node is being asked already"),
        ignore({"new runtime": "down"}, "nobody is there"),
    )
    yield from rules(got(HANDS, "hand"), hands, "fsm.sync.delegation")
    for message, trigger, answer in (
        ("yours", Take.GRANT, "taken"),
        ("not yours", Take.DENY, "not taken"),
    ):
        done = act({**_NEW, "taking": "taking"}, move("taking", trigger), send(BACK, answer))
        late = ignore({**_NEW, "taking": "not taking"}, "it is not waited for any more")
        dead = ignore({"new runtime": "down"}, "nobody is there")
        yield from rules(got(GIVEN, message), (done, late, dead), "fsm.sync.delegation")
    again = act(
        {**_NEW, "taking": "taking", TAKES: "empty", GIVEN: "empty"},
        move("taking", Take.AGAIN),
        send(TAKES, "take"),
    )
    yield from rules(after("taking", Take.AGAIN), (again,), "fsm.sync.delegation")


def _crashes() -> Iterator[Rule]:
    """A crash ends a story without a step; the node notes it some time."""
    for wish, runtime in ((OLD_CRASHES, "old runtime"), (NEW_CRASHES, "new runtime")):
        crash = act({runtime: "up"}, sets={runtime: "down"})
        yield from rules(wished(wish), (crash,), "kill -9")
    for owner in ("old", "new"):
        gone = act(
            {f"{owner} runtime": "down", "owner": owner}, sets={"owner": "nobody", "offer": "over"}
        )
        yield from rules(happens(f"the session of the {owner} runtime is over"), (gone,), "I-A7")


_OLD_WRITES: Final = {**_OLD, "giving": "[*]|asked|kept"}
_NEW_WRITES: Final = {**_NEW, "taking": "taken"}
_NOT_OLD: Final = {"owner": "not old"}
_NOT_NEW: Final = {"owner": "not new"}
_NEVER: Final = (
    Never("Two write.", ({**_OLD_WRITES, **_NEW_WRITES},), "I-D1"),
    Never("The old one writes, and is not the owner.", ({**_OLD_WRITES, **_NOT_OLD},), "I-D1"),
    Never("The new one writes, and is not the owner.", ({**_NEW_WRITES, **_NOT_NEW},), "I-D1"),
)


def compose(tables: Mapping[str, Table], bounds: Bounds) -> Composition:
    """Make the composition of these tables."""
    return Composition(
        name="delegation",
        about="A reporter hands its object to another runtime, and the node decides.",
        parts=(
            Part("giving", tables["object_delegation"], "old", _KEY),
            Part("taking", tables["object_take_over"], "new", _KEY),
        ),
        variables=(
            Variable("owner", ("old", "new", "nobody")),
            Variable("offer", ("none", "open", "over")),
            Variable("old runtime", ("up", "down")),
            Variable("new runtime", ("up", "down")),
        ),
        channels=(
            Channel(ASKS, "old", "node"),
            Channel(TOLD, "node", "old"),
            Channel(TAKES, "new", "node"),
            Channel(GIVEN, "node", "new"),
            Channel(HANDS, "old", "new"),
            Channel(BACK, "new", "old"),
        ),
        messages=tuple(Message(one, "M-54") for one in _MESSAGES),
        wishes=(Wish(BEGIN, 1), Wish(OLD_CRASHES, 1), Wish(NEW_CRASHES, 1)),
        rules=tuple(_rules()),
        never=_NEVER,
        ends=(
            End("the old one writes", ({**_OLD, "giving": "[*]|kept", "owner": "old"},)),
            End("the new one writes", ({**_NEW_WRITES, "owner": "new"},)),
            End("the owner crashed", ({"owner": "nobody"},)),
        ),
        bounds=bounds,
    )


DELEGATION_PLAN: Final = Plan("delegation", compose, Bounds(losses=2, duplicates=1, channel=2))
