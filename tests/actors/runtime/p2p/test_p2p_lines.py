"""Announcements of order on a P2P link: what is written is read, all else is refused (C-20)."""

import pytest

from actors.runtime.p2p.handshake import read_control
from specs.errors import BadMessageError
from specs.limits.p2p import ORDER_SENT
from tests.support.wire.wire import A, B


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
