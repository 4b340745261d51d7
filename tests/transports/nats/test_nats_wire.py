"""What a NATS server sends is read, whole or byte by byte; anything else is refused."""

import pytest

from specs.limits.engine import NATS_LINE, NATS_MESSAGE
from transports.nats.wire import (
    Delivery,
    Line,
    NatsError,
    Wire,
    headers,
    publication,
    subscription,
    unsubscription,
)

HEAD = b"NATS/1.0 503\r\n\r\n"

CASES = [
    (b'INFO {"server_id":"A"}\r\n', [Line(b"INFO", '{"server_id":"A"}')]),
    (b"PING\r\nPONG\r\n", [Line(b"PING"), Line(b"PONG")]),
    (b"+OK\r\n", []),
    (b"-ERR 'Authorization Violation'\r\n", [Line(b"-ERR", "Authorization Violation")]),
    (b"MSG a.b 7 2\r\nhi\r\n", [Delivery(7, b"a.b", b"", b"", b"hi")]),
    (b"MSG a.b 7 r.1 0\r\n\r\n", [Delivery(7, b"a.b", b"r.1", b"", b"")]),
    (b"MSG a 7 4\r\n\r\n\r\n\r\n", [Delivery(7, b"a", b"", b"", b"\r\n\r\n")]),
    (b"HMSG a 7 16 16\r\n%b\r\n" % HEAD, [Delivery(7, b"a", b"", HEAD, b"")]),
    (b"HMSG a 7 r 16 18\r\n%bhi\r\n" % HEAD, [Delivery(7, b"a", b"r", HEAD, b"hi")]),
]


@pytest.mark.parametrize(("data", "received"), CASES)
def test_lines_are_read(data, received):
    assert list(Wire().receive(data)) == received


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\r\n",
        b"MSG\r\n",
        b"MSG a 7\r\n",
        b"MSG a seven 2\r\nhi\r\n",
        b"MSG a 7 -1\r\n",
        b"MSG a 7 r x 2 2\r\nhi\r\n",
        b"HMSG a 7 17 16\r\n",
        b"HMSG a 7 x 16\r\n",
        b"MSG a 7 %d\r\n" % (NATS_MESSAGE + 1),
        b"x" * (NATS_LINE + 1),
    ],
)
def test_what_is_not_the_protocol_is_refused(data):
    with pytest.raises(NatsError):
        list(Wire().receive(data))


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (publication(b"a", b"hi"), b"PUB a 2\r\nhi\r\n"),
        (publication(b"a", b"", b"r"), b"PUB a r 0\r\n\r\n"),
        (publication(b"a", b"hi", b"r", HEAD), b"HPUB a r 16 18\r\n%bhi\r\n" % HEAD),
        (headers((b"A", b"1"), (b"B", b"2")), b"NATS/1.0\r\nA: 1\r\nB: 2\r\n\r\n"),
        (subscription(3, b"a.>"), b"SUB a.> 3\r\n"),
        (unsubscription(3), b"UNSUB 3\r\n"),
    ],
)
def test_lines_are_written(written, lines):
    assert written == lines
