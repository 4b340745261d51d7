"""Message nodes with one fault each: `python -m tests.conformance.node_mutant FAULT node ...`.

A fault swaps one function of the product in its own process; nothing of the product
knows of it.
"""

import sys
from collections.abc import Callable
from itertools import count
from typing import Final

import attrs

from actors.__main__ import main
from actors.node.session.exchange import Exchange
from actors.node.tables import Tables
from fsm.bus import node_routing
from fsm.bus.node_routing import NodeRouting, ToRuntimes
from fsm.registry.allocation import AllocationCore
from fsm.registry.node_rights import Hearing, NodeRights, Ownership
from fsm.session import node_session
from fsm.sync.subscriptions import SubscriptionCore
from specs import message
from specs.dialects.dialect import PLAIN
from specs.reply_code import Code
from tests.support.shape import Stand

PUT: Final = Stand()
"""Puts each fault in place: it has the shape of what it replaces."""


def no_owner_check() -> None:
    PUT.setattr(NodeRights, "ownership", lambda *_: Ownership.OWN)


def changes_return_to_the_publisher() -> None:
    plain = NodeRouting._fan_out
    PUT.setattr(
        NodeRouting,
        "_fan_out",
        lambda self, to, subscribers, _, *more: plain(self, to, subscribers, None, *more),
    )


def the_second_subscriber_is_missed() -> None:
    plain = NodeRouting.route

    def route(self, *about):
        found = plain(self, *about)
        if isinstance(found, ToRuntimes) and found.is_published:
            return attrs.evolve(found, runtimes=found.runtimes[:1] + found.runtimes[2:])
        return found

    PUT.setattr(NodeRouting, "route", route)


def another_code_for_unknown_addresses() -> None:
    plain = Exchange.undeliverable
    PUT.setattr(
        Exchange,
        "undeliverable",
        lambda self, one, code, *more: plain(self, one, Code.TIMEOUT, *more),
    )


def nothing_is_released() -> None:
    PUT.setattr(Tables, "release", lambda *_: None)


def unsubscribing_does_nothing() -> None:
    PUT.setattr(SubscriptionCore, "unsubscribe", lambda *_: None)


def any_session_may_free() -> None:
    plain = AllocationCore.free

    def free(self, owner, addresses):
        for one in addresses:
            plain(self, self.owner_of(one) or owner, (one,))

    PUT.setattr(AllocationCore, "free", free)


def any_token_will_do() -> None:
    class _Hmac:
        compare_digest = staticmethod(lambda *_: True)

    PUT.setattr(node_session, "hmac", _Hmac)


def no_consent_is_required() -> None:
    plain = NodeRights.hearing

    def hearing(self, *about):
        found = plain(self, *about)
        return Hearing.AT_ONCE if found is Hearing.BY_CONSENT else found

    PUT.setattr(NodeRights, "hearing", hearing)


def circles_go_on() -> None:
    PUT.setattr(node_routing, "is_routing_loop", lambda _: False)


def queued_messages_are_reversed() -> None:
    plain = node_session.NodeSessionCore._take_out
    PUT.setattr(node_session.NodeSessionCore, "_take_out", lambda self: plain(self)[::-1])


def one_wire_form_for_all_peers() -> None:
    from actors.node.links import acceptor as door

    PUT.setattr(door, "dialect_of", lambda *_: PLAIN)


def answers_come_from_the_asker() -> None:
    plain = message._answer

    def answer(asked, code, body):
        made = plain(asked, code, body)
        return attrs.evolve(made, from_=made.to)

    PUT.setattr(message, "_answer", answer)


def freed_addresses_stay() -> None:
    PUT.setattr(AllocationCore, "free", lambda *_: None)
    PUT.setattr(AllocationCore, "free_block", lambda *_: None)


def refusals_are_said_twice() -> None:
    plain = Exchange.send_to_link

    def send_to_link(self, port, one):
        plain(self, port, one)
        if one.code == Code.UNAUTHENTICATED:
            plain(self, port, one)

    PUT.setattr(Exchange, "send_to_link", send_to_link)


def a_loss_now_and_then() -> None:
    plain, times = Exchange.send, count(1)

    def send(self, *about):
        if next(times) % 97:
            plain(self, *about)

    PUT.setattr(Exchange, "send", send)


FAULTS: Final[dict[str, Callable[[], None]]] = {
    fault.__name__: fault
    for fault in (
        no_owner_check, changes_return_to_the_publisher, the_second_subscriber_is_missed,
        another_code_for_unknown_addresses, nothing_is_released, unsubscribing_does_nothing,
        any_session_may_free, any_token_will_do, no_consent_is_required, circles_go_on,
        queued_messages_are_reversed, one_wire_form_for_all_peers, answers_come_from_the_asker,
        freed_addresses_stay,
    )
}  # fmt: skip
"""Found by a conformance test each."""

FOUND_BY_SIEGE: Final = (refusals_are_said_twice, a_loss_now_and_then)
"""Found by numbers only."""

if __name__ == "__main__":
    more = {fault.__name__: fault for fault in FOUND_BY_SIEGE}
    (FAULTS | more)[sys.argv.pop(1)]()
    main()
