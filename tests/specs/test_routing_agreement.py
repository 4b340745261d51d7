"""What routers do is what the tables of `specs.routing` say."""

import pytest
from typing_extensions import override

from actors.kit.counters import Counters
from actors.kit.trace import NULL_TRACER
from actors.runtime.bus.admission import Admission
from actors.runtime.bus.messages import Origin
from actors.runtime.bus.pipeline import Pipelines
from actors.runtime.hop_trace import HopTrace
from actors.runtime.policy import Policy
from specs.message import Message, MessageType
from specs.routing import RUNTIME_CHECKS, Check, Direction

R = "hyperty-runtime://a.ex/ra"
STUB, OTHER = f"{R}/protostub/1", f"{R}/protostub/2"
HB = "hyperty://b.ex/hb"
GOOD = Message(1, MessageType.UPDATE, STUB, HB, {})
FLAWS = {
    Check.SOURCE: {"from_": OTHER},
    Check.STATUS_SENDER: {"to": f"{HB}/status"},
    Check.LOOP: {"body": {"via": [STUB, STUB]}},
    Check.POLICY: {"id": 13},
}
"""How a message breaks each check that the admission makes."""

CHECKED = [row for row in RUNTIME_CHECKS if row.check in FLAWS]


def flawed(checks):
    changes = {key: value for check in checks for key, value in FLAWS[check].items()}
    fields = {"id": 1, "type": MessageType.UPDATE, "from_": STUB, "to": GOOD.to, "body": {}}
    return Message(**(fields | changes))


class NoThirteen(Policy):
    @override
    def refusal(self, message, by):
        return "13 brings bad luck" if message.id == 13 else None


def refusal(message):
    hops = HopTrace(NULL_TRACER, "bus", Counters())
    admission = Admission(R, NoThirteen(), hops)
    admission.grant(STUB, STUB, Origin.LOCAL)
    return Pipelines(admission, lambda *_: None).pass_through(message, STUB, Direction.OUTGOING)


@pytest.mark.parametrize("first", range(len(CHECKED)), ids=[row.check for row in CHECKED])
def test_a_message_with_many_flaws_is_refused_for_the_first_of_the_table(first):
    """BUS-12, ADR-06, STB-06, BUS-11 in the order of the table."""
    row = CHECKED[first]
    found = refusal(flawed([one.check for one in CHECKED[first:]]))
    assert (found.reason, found.code) == (row.drop, row.refusal)
