"""A node that has forgotten an object is sent it until it takes it (STB-09, C-44)."""

from itertools import pairwise

import pytest
import trio

from actors.runtime.sync.reporter import Renewal
from specs.limits.sync import RENEWED_AT_ONCE
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import Code

URL = "comm://a.ex/1"
ASKED = Message(1, MessageType.SUBSCRIBE, "ra/sm", "domain://msg-node.a.ex/sm", {})
YES, BUSY = reply_to(ASKED, Code.OK, {}), refuse(ASKED, Code.UNAVAILABLE, "busy")


class Node:
    """Answers what it is ordered to, the last of it for good."""

    def __init__(self, *answers, after=0.0):
        self.answers, self.after = list(answers), after
        self.asked, self.at_once, self.most = [], 0, 0

    def renewal(self, permits=None):
        return Renewal(URL, self.ask, permits or trio.CapacityLimiter(RENEWED_AT_ONCE))

    async def ask(self):
        self.asked.append(trio.current_time())
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await trio.sleep(self.after)
        self.at_once -= 1
        return self.answers.pop(0) if self.answers[1:] else self.answers[0]


async def test_a_busy_node_is_asked_again_after_longer_and_longer_pauses(autojump_clock):
    node = Node(BUSY, BUSY, BUSY, YES)
    assert await node.renewal().run()
    pauses = [after - before for before, after in pairwise(node.asked)]
    assert pauses[1:] == pytest.approx([2 * pauses[0], 4 * pauses[0]])
