"""The short way of telling of a message tells what the long way tells (OBS-01)."""

import attrs
import orjson
import pytest

from actors.kit.trace import Hop
from actors.kit.trace_file import FileTracer
from specs.identity import SenderIdentity
from specs.message import Message, MessageType, reply_to, stamped
from specs.reply_code import Code
from specs.trace import Op

REQUEST = Message(
    7, MessageType.CREATE, "hyperty://a.ex/1", "hyperty://b.ex/2", {"value": {"n": 1}}
)

SENDER = SenderIdentity("hyperty-runtime://a.ex/ra", "user://idp.ex/alice")

MESSAGES = {
    "request": REQUEST,
    "stamped": stamped(REQUEST, "hyperty-runtime://a.ex/ra/protostub/1"),
    "answer": reply_to(REQUEST, Code.OK, {"value": {"token": "hidden", "list": [{"secret": 1}]}}),
    "provisional": reply_to(REQUEST, Code.TRYING, {"sequence": 2}),
    "one of several answers": reply_to(REQUEST, Code.OK, {"source": 'hyperty://b.ex/"'}),
    "answer without a code": attrs.evolve(REQUEST, type=MessageType.RESPONSE),
    "request with a code": attrs.evolve(REQUEST, body={"code": 2**63}),
    "of a user": attrs.evolve(REQUEST, identity=SENDER),
    "marks in its ends": attrs.evolve(REQUEST, from_='hyperty://a.ex/"é', to="hyperty://b.ex/\\"),
    "of a service": Message(1, MessageType.READ, "hyperty://a.ex/1", "domain://registry.a.ex"),
}

STAMP = ("run", "node", "ln", "wall_ns", "mono_ns", "t")


def reported(tracer):
    records = [orjson.loads(line) for page in tracer.take() for line in page.splitlines()]
    return [{key: part for key, part in one.items() if key not in STAMP} for one in records]


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("more", [{}, {"stub": "S", "link": "L"}], ids=["bare", "more"])
@pytest.mark.parametrize("seq", [{}, {"seq": 3}], ids=["unnumbered", "numbered"])
@pytest.mark.parametrize("kept", [{}, {"bodies": True, "names": True}], ids=["little", "much"])
async def test_a_hop_is_reported_like_its_fact(message, more, seq, kept):
    tracer = FileTracer("ra", **kept)
    hop = Hop("bus", (Op.RCV,), more)
    for _ in range(2):
        tracer.message("bus", Op.RCV, message, **more, **seq)
        tracer.hop(hop, message, **seq)
    tracer.record("bus", tracer.message_fact(Op.RCV, message, **more, **seq))
    *short, fact = reported(tracer)
    assert short == [fact] * 4
