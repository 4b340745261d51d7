"""What the stub does: `fsm.session.stub_client`, without its outbox and its clock."""

from collections.abc import Iterator
from typing import Final

from fsm.compositions.session_terms import (
    CONNECT,
    CUT,
    DISCONNECT,
    FREE,
    LINKS,
    SUBSCRIBE,
    TO_NODE,
    TO_STUB,
    UNSUBSCRIBE,
    USE,
)
from fsm.machines.stub_connection import Trigger
from fsm.product.rule import (
    Act,
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

__all__ = ["stub_rules"]

_SENT_ON_WISH: Final = {
    USE: "allocate",
    FREE: "free",
    SUBSCRIBE: "subscribe",
    UNSUBSCRIBE: "unsubscribe",
}


def stub_rules() -> Iterator[Rule]:
    """All rules of the stub."""
    yield from rules(happens("the stub is built"), (_BUILT,), "3.2 constructor")
    yield from rules(wished(CONNECT), (_CONNECT,), "STB-03")
    for cause in (after("stub", Trigger.ESTABLISH_FAILED), wished(DISCONNECT)):
        yield from rules(cause, (_GIVES_UP,), "3.2 T_open, STB-04")
    yield from rules(wished(DISCONNECT), (_UNUSED, _NOT_BACK), "STB-04, I-S10")
    for before, link in zip(("none", *LINKS), LINKS, strict=False):
        yield from _dialled(before, link)
        yield from _answered(link)
        yield from _lost(link)
        yield from _left(link)
        yield from _talks(link)


_BUILT: Final = act({"stub": "[*]", "phase": "idle"}, begin("stub", Trigger.CONSTRUCTED))
_CONNECT: Final = act({"stub": "created"}, move("stub", Trigger.CONNECT), sets={"phase": "away"})
_UNUSED: Final = act(
    {"stub": "created"}, move("stub", Trigger.CONNECT_IMPOSSIBLE), sets={"phase": "ended"}
)
_GIVES_UP: Final = act(
    {"stub": "in-progress", "phase": "away"},
    move("stub", Trigger.ESTABLISH_FAILED),
    sets={"phase": "ended"},
)
_NOT_BACK: Final = act({"stub": "disconnected", "phase": "away"}, sets={"phase": "ended"})


def _dialled(before: str, link: str) -> Iterator[Rule]:
    """A new link stands: the session is asked for."""
    away = {"phase": "away", "link": before}
    up = {"phase": "opening", "link": link}
    acts = (
        act({**away, "token": "none"}, send(TO_NODE, f"open {link}"), sets=up),
        act({**away, "token": "not none"}, send(TO_NODE, f"re-open {link}"), sets=up),
    )
    yield from rules(happens(f"link {link} stands"), acts, "STB-08, STB-09")


def _answered(link: str) -> Iterator[Rule]:
    asked = {"phase": "opening", "link": link}
    over = ignore({"link": f"not {link}"}, "it came by a link that is over")
    for word in ("opened", "re-opened", "forgotten", "refused"):
        late = ignore({"link": link, "phase": "not opening"}, "nothing is asked any more")
        yield from rules(got(TO_STUB, f"{word} {link}"), (over, late), "3.2")
    yield from rules(got(TO_STUB, f"opened {link}"), _opened(asked), "M-14")
    yield from rules(got(TO_STUB, f"re-opened {link}"), _live(asked), "M-15")
    anew = act(asked, send(TO_NODE, f"open {link}"), sets={"token": "none"})
    yield from rules(got(TO_STUB, f"forgotten {link}"), (anew,), "STB-09: 410 means a new open")
    refused = act(asked, send(TO_NODE, f"gone {link}"), sets={"phase": "away"})
    yield from rules(got(TO_STUB, f"refused {link}"), (refused,), "M-14: 409 may change")
    done = (
        act(
            {"phase": "closing", "link": link},
            move("stub", Trigger.CLOSED),
            send(TO_NODE, f"gone {link}"),
            sets={"phase": "ended"},
        ),
        ignore({"link": link, "phase": "not closing"}, "nobody says goodbye any more"),
        over,
    )
    yield from rules(got(TO_STUB, f"closed {link}"), done, "M-16")


def _opened(asked: dict[str, str]) -> Iterator[Act]:
    """Remember the token, which may be that of a session that is over already."""
    known = (
        act({"session": "open|detached"}, sets={"token": "good"}),
        act({"session": "not open|detached"}, sets={"token": "stale"}),
    )
    for live in _live(asked):
        for one in known:
            yield from live.also(one)


def _live(asked: dict[str, str]) -> tuple[Act, ...]:
    talks = {"phase": "open"}
    return (
        act({**asked, "stub": "in-progress"}, move("stub", Trigger.ESTABLISHED), sets=talks),
        act({**asked, "stub": "disconnected"}, move("stub", Trigger.REESTABLISHED), sets=talks),
    )


def _lost(link: str) -> Iterator[Rule]:
    """The link is gone, or is given up because it is silent."""
    gone = send(TO_NODE, f"gone {link}")
    closed = move("stub", Trigger.CLOSED)
    opening = {"link": link, "phase": "opening"}
    talking = act({"link": link, "phase": "open"}, closed, sets={"phase": "away"})
    leaving = act({"link": link, "phase": "closing"}, closed, sets={"phase": "ended"})
    asking = act(opening, sets={"phase": "away"})
    ignored = (
        ignore({"link": f"not {link}"}, "that link is over already"),
        ignore({"link": link, "phase": "not opening|open|closing"}, "that link is over already"),
    )
    noticed = (talking, leaving, asking, *ignored)
    yield from rules(got(TO_STUB, f"cut {link}"), noticed, "3.2 t: link lost")
    hung_up = [Act(one.when, one.moves, (gone,), one.sets) for one in (talking, leaving, asking)]
    yield from rules(wished(CUT), hung_up, "3.2: link lost")
    yield from rules(after("stub", Trigger.CLOSED), hung_up[:2], "3.2: a ping is not answered")
    yield from rules(happens("no session in time"), hung_up[2:], "3.2: T_open, tried again")
    failed = act(
        {**opening, "stub": "in-progress"},
        move("stub", Trigger.ESTABLISH_FAILED),
        gone,
        sets={"phase": "ended"},
    )
    yield from rules(after("stub", Trigger.ESTABLISH_FAILED), (failed,), "3.2: T_open")


def _left(link: str) -> Iterator[Rule]:
    """The stub is told to disconnect: nothing of it goes on after the goodbye."""
    gone = send(TO_NODE, f"gone {link}")
    opening = {"link": link, "phase": "opening"}
    ended = {"phase": "ended"}
    acts = (
        act(
            {"link": link, "phase": "open"},
            send(TO_NODE, f"close {link}"),
            sets={"phase": "closing"},
        ),
        act(
            {**opening, "stub": "in-progress"},
            move("stub", Trigger.ESTABLISH_FAILED),
            gone,
            sets=ended,
        ),
        act({**opening, "stub": "disconnected"}, gone, sets=ended),
    )
    yield from rules(wished(DISCONNECT), acts, "STB-04, I-S10")


def _talks(link: str) -> Iterator[Rule]:
    for wish, word in _SENT_ON_WISH.items():
        said = act({"link": link, "phase": "open"}, send(TO_NODE, f"{word} {link}"))
        yield from rules(wished(wish), (said,), "3.3")
