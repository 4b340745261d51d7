"""What the reporter's end does: `fsm.sync.reporter` and `fsm.sync.invitations`."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from fsm.compositions.sync_terms import (
    ASKS,
    CHANGE,
    CHANGES,
    DECIDE,
    DELETE,
    DOUBLED,
    INVITE,
    INVITES,
    LOST,
    TOLD,
    VERSIONS,
)
from fsm.machines.invitation import Trigger as Invitation
from fsm.machines.object_subscription import Trigger
from fsm.product.rule import (
    Act,
    Rule,
    act,
    after,
    begin,
    got,
    happens,
    ignore,
    in_time,
    move,
    rules,
    send,
    wished,
)

__all__ = ["reporter_rules"]

_THERE: Final = {"object": "there"}
_FREE: Final = {**_THERE, "subscription": "[*]|refused|removed"}
_REQUESTED: Final = {"subscription": "requested"}
_ACTIVE: Final = {"subscription": "active"}
_NOT_ACTIVE: Final = {"subscription": "not active"}
_ACCEPT: Final = move("subscription", Trigger.ACCEPT)
_REFUSE: Final = move("subscription", Trigger.REFUSE)
_SILENCE: Final = {"copy": "live", CHANGES: "empty"}
"""Where the copy waits for nothing but what it does not know of."""
_DENIED: Final = send(TOLD, "denied")


def reporter_rules() -> Iterator[Rule]:
    """All rules of the reporter's end."""
    yield from _invitations()
    yield from _subscriptions()
    yield from _reads()
    yield from _changes()
    yield from _deletion()


def _granted(when: dict[str, str], *does: Act) -> Iterator[Act]:
    """The newest object is given out, after `does`."""
    for version in VERSIONS:
        given = act({**when, "version": version}, send(TOLD, f"granted {version}"))
        acts = [given]
        for one in does:
            acts = [joined for each in acts for joined in one.also(each)]
        yield from acts


def _invitations() -> Iterator[Rule]:
    invite = act(
        {**_THERE, "authorised": "no"},
        begin("invitation", Invitation.SEND),
        send(INVITES, "invite"),
        sets={"authorised": "yes"},
    )
    waits = _granted({}, invite, act(_REQUESTED, _ACCEPT))
    yield from rules(wished(INVITE), invite.also(act({"subscription": "not requested"})), "SYN-04")
    yield from rules(wished(INVITE), waits, "SYN-04, SYN-11")
    late = ignore({"invitation": "not sent"}, "the invitation is over")
    answers = {
        "trying": Invitation.PROVISIONAL,
        "accepted": Invitation.ACCEPT,
        "declined": Invitation.REFUSE,
    }
    for answer, trigger in answers.items():
        taken = act({"invitation": "sent"}, move("invitation", trigger))
        yield from rules(got(ASKS, answer), (taken, late), "SYN-05")
    silent = act({"invitation": "sent"}, move("invitation", Invitation.SILENCE))
    yield from rules(after("invitation", Invitation.SILENCE), (silent,), "SYN-05")


def _subscriptions() -> Iterator[Rule]:
    asked = begin("subscription", Trigger.REQUEST)
    unknown = act({**_FREE, "authorised": "no"}, asked)
    invited = act({**_FREE, "authorised": "yes"}, asked, _ACCEPT)
    acts = (
        act({"object": "deleted"}, _DENIED),
        unknown,
        *_granted({}, invited),
        *_granted({**_THERE, **_ACTIVE}, act({}, move("subscription", Trigger.RENEW))),
        ignore({**_THERE, **_REQUESTED}, "the reporter is being asked already"),
    )
    yield from rules(got(ASKS, "subscribe"), acts, "SYN-11, SYN-12")
    accepts = act(_REQUESTED, _ACCEPT)
    refuses = act(_REQUESTED, _REFUSE, _DENIED)
    yield from rules(wished(DECIDE), _granted({}, accepts), "M-39 200")
    yield from rules(wished(DECIDE), (refuses,), "M-39 403")
    yield from rules(after("subscription", Trigger.REFUSE), (refuses,), "M-39: nothing is no")
    leave = move("subscription", Trigger.UNSUBSCRIBE)
    left = (
        act(_REQUESTED, leave, _DENIED),
        act(_ACTIVE, leave),
        ignore({"subscription": "not requested|active"}, "it is no observer"),
    )
    yield from rules(got(ASKS, "unsubscribe"), left, "SYN-20")
    gone = act({**_ACTIVE, "copy": "[*]|deleted"}, move("subscription", Trigger.EXPIRE))
    yield from rules(after("subscription", Trigger.EXPIRE), (gone,), "SYN-20")


def _reads() -> Iterator[Rule]:
    values = [
        act({**_THERE, **_ACTIVE, "version": one}, send(TOLD, f"value {one}")) for one in VERSIONS
    ]
    refused = send(TOLD, "unreadable")
    acts = (
        *values,
        act({**_THERE, **_NOT_ACTIVE}, refused),
        act({"object": "deleted"}, refused),
    )
    yield from rules(got(ASKS, "read"), acts, "SYN-18, SYN-19")


def _changes() -> Iterator[Rule]:
    """What is published reaches the copy while its path stands: from its wish to its end."""
    for before, version in pairwise(VERSIONS):
        yield from _change(CHANGE, before, version, times=1)
        yield from _change(DOUBLED, before, version, times=2)
        yield from _change(LOST, before, version, times=0)
    again = (
        act(
            {**_THERE, **_ACTIVE, **_SILENCE, "version": version, "have": f"not {version}"},
            send(CHANGES, f"changed {version}"),
        )
        for version in VERSIONS[1:]
    )
    yield from rules(in_time("the last change is said again"), tuple(again), "I-D4")


def _change(wish: str, before: str, version: str, times: int) -> Iterator[Rule]:
    when = {**_THERE, "version": before}
    told = [send(CHANGES, f"changed {version}")] * times
    acts = (
        act({**when, "copy": "not [*]|deleted"}, *told, sets={"version": version}),
        act({**when, "copy": "[*]|deleted"}, sets={"version": version}),
    )
    yield from rules(wished(wish), acts, "SYN-13, SYN-16")


def _deletion() -> Iterator[Rule]:
    """Who asks is refused at once, who observes is told and then removed."""
    gone = act(_THERE, sets={"object": "deleted"})
    invited = (
        act({"invitation": "sent"}, move("invitation", Invitation.OBJECT_DELETED)),
        act({"invitation": "not sent"}),
    )
    for wish, farewell in ((DELETE, (send(CHANGES, "deleted"),)), (LOST, ())):
        observed = (
            act(_REQUESTED, move("subscription", Trigger.OBJECT_DELETED), _DENIED),
            act(_ACTIVE, *farewell),
            act({"subscription": "not requested|active"}),
        )
        acts = [
            both
            for one in invited
            for other in observed
            for first in gone.also(one)
            for both in first.also(other)
        ]
        yield from rules(wished(wish), acts, "SYN-22")
    told = act({"object": "deleted", **_ACTIVE}, move("subscription", Trigger.OBJECT_DELETED))
    yield from rules(happens("all observers were told, or are silent"), (told,), "SYN-22")
