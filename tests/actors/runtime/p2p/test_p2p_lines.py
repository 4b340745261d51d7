"""Announcements of order on a P2P link: what is written is read, all else is refused (C-20)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.runtime.p2p.handshake import read_control, write_behind
from fsm.p2p.transfer import Behind
from specs.errors import BadMessageError
from specs.limits.p2p import ORDER_SENT
from tests.support.wire.wire import A, B

IDS = st.integers(min_value=0, max_value=2**53)
BEHINDS = st.builds(
    Behind,
    st.just(A),
    st.just(B),
    IDS | st.text(),
    IDS,
    st.integers(min_value=0, max_value=10**6).map(float),
    st.frozensets(IDS, max_size=ORDER_SENT),
)


@given(BEHINDS | st.just(Behind(A, B)))
def test_an_announcement_is_read(behind):
    assert read_control(write_behind(behind)) == behind


@pytest.mark.parametrize(
    "lacks",
    [
        b'"top":1,"age":0',
        b'"top":1,"answers":[]',
        b'"age":0,"answers":[]',
        b'"top":1,"age":-1,"answers":[]',
        b'"top":1,"age":0,"answers":["7"]',
        b'"top":1,"age":0,"answers":[7,7]',
        b'"top":1,"age":0,"answers":%a' % [*range(ORDER_SENT + 1)],
    ],
)
def test_an_announcement_that_lacks_something_is_refused(lacks):
    ends = b'{"p2p":"behind","from":"%b","to":"%b","last":1,' % (A.encode(), B.encode())
    with pytest.raises(BadMessageError, match="lacks its top"):
        read_control(ends + lacks + b"}")
