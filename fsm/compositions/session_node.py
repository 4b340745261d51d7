"""What the node does: `fsm.session.node_session`, and the tables that change with it."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Final

from fsm.compositions.session_terms import LINKS, RESTART, TO_NODE, TO_STUB
from fsm.machines.address import Trigger as Address
from fsm.machines.node_subscription import Trigger as Path
from fsm.machines.session import Trigger
from fsm.product.rule import (
    Act,
    Rule,
    Send,
    act,
    after,
    begin,
    got,
    ignore,
    move,
    rules,
    send,
    wished,
)

__all__ = ["node_rules"]

_NONE: Final = {"session": "[*]|closed|expired"}
_FREE: Final = {"held": "none"}


def node_rules() -> Iterator[Rule]:
    """All rules of the node."""
    for link in LINKS:
        yield from _opened(link)
        yield from _reopened(link)
        yield from _ended(link)
        yield from _lost(link)
        yield from _uses(link)
    detached = {"session": "detached"}
    expired = act(detached, move("session", Trigger.EXPIRE))
    yield from rules(after("session", Trigger.EXPIRE), _over(expired), "MN-08: T_gc")
    stopped = act(detached, move("session", Trigger.CLOSE))
    yield from rules(wished(RESTART), _over(stopped), "a node that stops closes what is detached")


def _opened(link: str) -> Iterator[Rule]:
    fresh = act(
        _NONE,
        begin("session", Trigger.OPENED),
        send(TO_STUB, f"opened {link}"),
        sets={"held": link},
    )
    # The stub that opens offers no token: it knows none. By a login it may have another.
    taken = act({"session": "open|detached"}, send(TO_STUB, f"refused {link}"))
    yield from rules(got(TO_NODE, f"open {link}"), (fresh, taken), "M-14, MN-04")
    renewed = _attached(link, {}, send(TO_STUB, f"opened {link}"))
    yield from rules(got(TO_NODE, f"open {link}"), renewed, "C-84: its owner logged in again")


def _attached(link: str, when: Mapping[str, str], answer: Send) -> Iterator[Act]:
    """Give a session that there is to a link, and cut the one that has it."""
    attach = move("session", Trigger.REOPENED)
    yield act({**when, "session": "detached"}, attach, answer, sets={"held": link})
    yield act({**when, "session": "open", "held": link}, answer)
    for older in LINKS:
        if older != link:
            yield act(
                {**when, "session": "open", "held": older},
                move("session", Trigger.LINK_LOST),
                attach,
                send(TO_STUB, f"cut {older}"),
                answer,
                sets={"held": link},
            )


def _reopened(link: str) -> Iterator[Rule]:
    acts = [
        *_attached(link, {"token": "good"}, send(TO_STUB, f"re-opened {link}")),
        act(_NONE, send(TO_STUB, f"forgotten {link}")),
        act({"token": "not good", "session": "open|detached"}, send(TO_STUB, f"forgotten {link}")),
    ]
    yield from rules(got(TO_NODE, f"re-open {link}"), acts, "M-15, MN-06, I-M2")


def _ended(link: str) -> Iterator[Rule]:
    held = {"session": "open", "held": link}
    close = move("session", Trigger.CLOSE)
    closed = act(held, close, send(TO_STUB, f"closed {link}"), sets=_FREE)
    stranger = act({"held": f"not {link}"}, send(TO_STUB, f"closed {link}"))
    yield from rules(got(TO_NODE, f"close {link}"), (*_over(closed), stranger), "M-16, MN-07")
    stopped = act(held, close, send(TO_STUB, f"cut {link}"), sets=_FREE)
    yield from rules(wished(RESTART), _over(stopped), "a node that stops says goodbye")


def _lost(link: str) -> Iterator[Rule]:
    lose = act({"session": "open", "held": link}, move("session", Trigger.LINK_LOST), sets=_FREE)
    over = ignore({"held": f"not {link}"}, "the link does not have the session")
    yield from rules(got(TO_NODE, f"gone {link}"), (lose, over), "3.3 MN session: link lost")
    silent = Act(lose.when, lose.moves, (send(TO_STUB, f"cut {link}"),), lose.sets)
    yield from rules(after("session", Trigger.LINK_LOST), (silent,), "a ping is not answered")


def _uses(link: str) -> Iterator[Rule]:
    """The runtime's wishes for its address; a link without the session is not heard."""
    held = {"held": link}
    stranger = ignore({"held": f"not {link}"}, "answered 401: the link has no session")
    acts = {
        "allocate": (
            act({**held, "address": "not allocated"}, begin("address", Address.ALLOCATE)),
            ignore({**held, "address": "allocated"}, "another address, which is not followed"),
        ),
        "free": (
            *_freed(held),
            ignore({**held, "address": "not allocated"}, "unknown: answered 200"),
        ),
        "subscribe": (
            act({**held, "address": "allocated", "path": "not active"}, _SUBSCRIBES),
            ignore({**held, "path": "active"}, "it is subscribed already"),
            ignore({**held, "address": "not allocated", "path": "not active"}, "answered 403"),
        ),
        "unsubscribe": (
            act({**held, "path": "active"}, move("path", Path.UNSUBSCRIBE)),
            ignore({**held, "path": "not active"}, "unknown: answered 200"),
        ),
    }
    for word, done in acts.items():
        yield from rules(got(TO_NODE, f"{word} {link}"), (*done, stranger), "3.3, MN-10..MN-15")


_SUBSCRIBES: Final = begin("path", Path.SUBSCRIBE)


def _over(ended: Act) -> Iterator[Act]:
    """The session ends: its path and address go with it, and its token opens nothing."""
    yield from _together(ended, _PATH_GOES, _ADDRESS_GOES, _TOKEN_SPENT)


def _freed(held: Mapping[str, str]) -> Iterator[Act]:
    """The address is released, and nobody is delivered what goes to it."""
    released = act({**held, "address": "allocated"}, move("address", Address.RELEASE))
    yield from _together(released, _PATH_OF_ADDRESS_GOES)


_PATH_GOES: Final = (
    act({"path": "active"}, move("path", Path.SESSION_OVER)),
    act({"path": "not active"}),
)
_PATH_OF_ADDRESS_GOES: Final = (
    act({"path": "active"}, move("path", Path.ADDRESS_RELEASED)),
    act({"path": "not active"}),
)
_ADDRESS_GOES: Final = (
    act({"address": "allocated"}, move("address", Address.RELEASE)),
    act({"address": "not allocated"}),
)
_TOKEN_SPENT: Final = (act({"token": "good"}, sets={"token": "stale"}), act({"token": "not good"}))


def _together(first: Act, *others: Sequence[Act]) -> Iterator[Act]:
    """Do the first, and of each of the others the one that holds."""
    for choice in product(*others):
        yield from reduce(lambda acts, one: [b for a in acts for b in a.also(one)], choice, [first])
