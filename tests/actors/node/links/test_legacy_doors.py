"""The doors for upstream's stubs, alone: whatever comes is read, nothing is raised."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.node.links.acceptor import Claim
from actors.node.links.upstream import PlainAcceptor, SessionAcceptor
from fsm.session.node_session_io import OutboundMessage
from specs.message import Message, reply_to
from specs.reply_code import Code
from tests.support.node.node_peer import RA, SESSION
from transports.codec import BadLine
from transports.link import Upgrade

URL = f"{RA}/{'0' * 64}"

words = st.sampled_from([
    "mn:/session", "open", "re-open", "close", "disconnect", "update", RA, URL, SESSION, "", "7",
])  # fmt: skip
scalars = words | st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
keys = st.sampled_from(["id", "type", "from", "to", "body", "cmd", "via", "source", "runtimeURL"])
messages = st.dictionaries(keys, values | st.dictionaries(keys, values))
frames = st.binary() | messages.map(lambda raw: json.dumps(raw).encode())


def written(door, message):
    return list(door.write([OutboundMessage(message, b"")]))


@pytest.mark.parametrize(
    "make", [lambda: SessionAcceptor(SESSION), lambda: PlainAcceptor(SESSION, Upgrade("/", {}))]
)
@given(said=st.lists(frames, max_size=4))
def test_every_frame_is_read_and_can_be_answered(make, said):
    door = make()
    items = [item for frame in said for item in door.read(frame)]
    answers = [item.answer if isinstance(item, BadLine) else item for item in items]

    assert all(isinstance(item, Message | BadLine) for item in items)
    for message in filter(None, answers):
        assert len(written(door, reply_to(message, Code.NOT_FOUND))) == 1


@given(named=st.text() | words)
def test_a_plain_stub_claims_the_named_session_in_any_case(named):
    (claim,) = PlainAcceptor(SESSION, Upgrade("/", {"runtimeURL": named})).greeting()

    assert isinstance(claim, Claim)
    assert claim.opening.body["params"] == {"runtimeURL": named}
