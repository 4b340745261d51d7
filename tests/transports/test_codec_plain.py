"""Lines that are written as this project writes them are read by a shorter way, to the same end.

Lines are made by chance of the parts of such lines and of parts that look like them: other
spaces, order and escapes, keys twice, one key more or less, other numbers.
"""

from random import Random

import attrs
import orjson
import pytest

from actors.node.links.acceptor import Acceptor, spelt
from actors.node.links.upstream import PlainAcceptor, SessionAcceptor
from fsm.session.node_session_io import OutboundMessage
from specs.dialects.dialect import PLAIN, UPSTREAM, Dialect, is_emitted_plain
from specs.identity import NOBODY, READ, SenderIdentity, Stamp
from specs.limits.protocol import MAX_JSON_DEPTH, MAX_JSON_KEYS, MAX_JSON_TEXT
from specs.message import Message
from tests.support.chance import examples
from transports.codec import BadLine, decode_line, encode
from transports.link import Upgrade

EXAMPLES = examples(8_000)
ALICE = SenderIdentity("hyperty-runtime://a.ex/alice")
STAMPS = (NOBODY, READ, Stamp(ALICE), Stamp(ALICE, is_kept=True))

IDS = (b"1", b"7", b"9007199254740991", b"9007199254740992", b"0", b"07", b"-7", b"7.0",
       b"7e0", b'"7"', b" 7", b"7 ", b"1_0", b"null", b"true", b"", b"99999999999999999",
       b"+7")  # fmt: skip
TYPES = (b"create", b"update", b"read", b"response", b"execute", b"delete", b"subscribe",
         b"forward", b"CREATE", b"nothing", b"cre\\u0061te", b"")  # fmt: skip
ENDS = (b"hyperty-runtime://a.ex/alice", b"hyperty://a.ex/1", b"comm://a.ex/1/changes",
        b"hyperty://a.ex/1/status", b"runtime://a.ex/alice", b"hyperty://A.ex/1", b"hyperty://a.ex/1/",
        b"domain://registry.a.ex", b"comm://a.ex/1/resources", b"comm://a.ex/1/children",
        b"domain://msg-node.a.ex/address-allocation", b"comm://a.ex/1/subscription", b"comm://a.ex/1",
        b"mn:/session", b"", b"x",
        b"hyperty://a.ex/\\u0061", b"hyperty:\\/\\/a.ex/1", b"hyperty://a.ex/1\\", b"\xff",
        b"hyperty://a.ex/" + b"l" * 600)  # fmt: skip
PARTS = (
    b'"value":"x"', b'"value":"connected"', b'"status":"connected"',
    b'"value":{"version":0}', b'"value":{"a":[1,2,{"b":null}]}', b'"code":200',
    b'"code":"2XX"', b'"code":99', b'"source":"hyperty://a.ex/1"', b'"source":"runtime://a.ex/x"',
    b'"via":["hyperty://a.ex/1"]', b'"via":"hyperty://a.ex/1"', b'"via":[5]', b'"desc":"why"',
    b'"description":"why"', b'"Value":1', b'"subscriber":"hyperty://a.ex/1"', b'"value":1e999',
    b'"identity":{"runtime":"hyperty-runtime://a.ex/mallory","vouchedBy":"none"}', b'"identity":7',
    b'"value":"\xff"', b'"value":"\\ud800"', b'"value":NaN', b'"resource":"/hyperty/x"',
    b'"resources":["runtime://a.ex/x"]', b'"value":{"version":3,"url":"comm://a.ex/1"}', b'"value"',
    b'"n":123456789012345678901234567890', b'"value":"}}"', b'"body":{"a":1}',
    b'"x":",\\"body\\":{"',
    b'"deep":' + b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH,
    b'"deep":' + b"[" * (MAX_JSON_DEPTH - 2) + b"]" * (MAX_JSON_DEPTH - 2),
    b'"deep":' + b"[" * 2000,
    b'"long":"' + b"y" * (MAX_JSON_TEXT + 1) + b'"',
    b'"many":{' + b",".join(b'"%d":1' % one for one in range(MAX_JSON_KEYS + 1)) + b"}",
    b",".join(b'"%d":1' % one for one in range(MAX_JSON_KEYS + 1)), b"",
)  # fmt: skip
TAILS = (
    b"}",
    b"",
    b" }",
    b"} ",
    b"}\r",
    b"}}",
    b',"x":{}}',
    b',"body":{}}',
    b',"id":8}',
    b"]",
    b"\0",
)


def line_of(dice: Random) -> bytes:
    """Return a line that is mostly in order, with one or two oddities."""
    return odd(dice, envelope_of(dice), body_of(dice))


def envelope_of(dice: Random) -> list[bytes]:
    """Return the fields of a message without its body, the id first."""
    return [
        b'"id":' + usually(dice, 3, IDS),
        b'"type":"%b"' % usually(dice, 5, TYPES),
        b'"from":"%b"' % usually(dice, 4, ENDS),
        b'"to":"%b"' % usually(dice, 4, ENDS),
    ]


def body_of(dice: Random) -> bytes:
    """Return a body."""
    parts = [dice.choice(PARTS) for _ in range(dice.choice((0, 1, 1, 1, 2, 3)))]
    return b'"body":{%b}' % b",".join(parts)


def odd(dice: Random, envelope: list[bytes], body: bytes) -> bytes:
    """Return the line of a message, as it should be or nearly so."""
    fields = [*envelope, body]
    if dice.random() < 0.1:
        dice.shuffle(fields)
    if dice.random() < 0.1:
        more = (*fields, b'"id":8', b'"x":1', b'"body":{}', b"")
        fields.insert(dice.randrange(6), dice.choice(more))
    if dice.random() < 0.05:
        del fields[dice.randrange(len(fields))]
    comma = b"," if dice.random() < 0.9 else b", "
    line = b"{" + comma.join(fields) + usually(dice, 1, TAILS)
    if dice.random() < 0.05:
        place = dice.randrange(len(line))
        line = line[:place] + bytes((dice.randrange(256),)) + line[place + dice.randrange(2) :]
    return line.replace(b"\n", b" ")


def usually(dice: Random, first: int, texts: tuple[bytes, ...]) -> bytes:
    """Return one of the first texts, at times one of the others."""
    return dice.choice(texts[:first] if dice.random() < 0.8 else texts)


def shown(read: object) -> object:
    """Return all that can be seen of an item: an identity does not count as a difference."""
    if isinstance(read, Message):
        return read, read.identity, orjson.dumps(read.body)
    assert isinstance(read, BadLine)
    return read.raw, read.error.code, read.error.reason, read.answer


DIALECTS = (
    PLAIN,
    UPSTREAM,
    attrs.evolve(UPSTREAM, from_zero=True, names={"hyperty://a.ex/1": "hyperty://A.ex/1"}),
    attrs.evolve(UPSTREAM, names={ENDS[0].decode(): ENDS[0].decode()}),
    attrs.evolve(UPSTREAM, names={ENDS[0].decode(): "runtime://a.ex/alice"}),
    attrs.evolve(UPSTREAM, via_text=True),
    Dialect(string_ids=True),
    Dialect(runtime_alias=True),
    Dialect(upper_types=True),
    Dialect(list_key="subscribe"),
    Dialect(text_key="desc"),
    Dialect(allocation="object-address-allocation"),
)

HABITS = (
    (
        b'{"id":1,"type":"subscribe","from":"hyperty://a.ex/1","to":"comm://a.ex/1/subscription",'
        b'"body":{"source":"hyperty://a.ex/1"}}'
    ),
    (
        b'{"id":1,"type":"subscribe","from":"hyperty://a.ex/1","to":"domain://msg-node.a.ex/sm",'
        b'"body":{"resources":["comm://a.ex/1/changes"]}}'
    ),
    (
        b'{"id":1,"type":"response","from":"comm://a.ex/1","to":"hyperty://a.ex/1",'
        b'"body":{"code":200,"value":{"version":3,"url":"comm://a.ex/1"}}}'
    ),
)
"""Messages that upstream's peers read otherwise, whose bodies show it in several fields."""


@pytest.mark.chance
def test_the_line_for_a_peer_of_upstream_is_made_of_the_line_in_normal_form():
    """N3, N9: where both are spelt alike; such a peer gets no identity of this node."""
    dice = Random(5)  # noqa: S311 - chance, no secret
    plain = 0
    for _ in range(EXAMPLES):
        text = line_of(dice) if dice.random() < 0.95 else dice.choice(HABITS)
        message = decode_line(text, dice.choice(STAMPS))
        if isinstance(message, BadLine):
            continue
        spelling = dice.choice(DIALECTS)
        line, plainly = encode(message, spelling), is_emitted_plain(message, spelling)
        entry = OutboundMessage(message, encode(message), dice.choice((None, {})))
        assert spelt(entry, spelling) == spelt(entry, spelling) == line
        plain += plainly
    assert plain > EXAMPLES / 20


class Whole:
    """An acceptor that never takes the shorter way."""

    def familiar(self, frame: bytes) -> None:
        """Know no frame."""


class WholePlain(Whole, PlainAcceptor):  # type: ignore[misc]
    """Plain form."""


class WholeSession(Whole, SessionAcceptor):  # type: ignore[misc]
    """Form with a session."""


def acceptors(dice: Random) -> tuple[Acceptor, Acceptor]:
    """Return two acceptors of one form: as it is, and without the shorter way."""
    if dice.random() < 0.5:
        control = "domain://msg-node.a.ex/session"
        return SessionAcceptor(control), WholeSession(control)
    named = dice.choice(("hyperty-runtime://a.ex/alice", "runtime://a.ex/alice"))
    upgrade = Upgrade("/stub/connect", {"runtimeURL": named})
    return PlainAcceptor("mn", upgrade), WholePlain("mn", upgrade)


@pytest.mark.chance
def test_a_peer_of_upstream_is_read_and_learnt_from_alike():
    """N3: what a peer shows by its spelling does not depend on the way its lines are read."""
    dice = Random(4)  # noqa: S311 - chance, no secret
    familiar = 0
    for _ in range(EXAMPLES // 100):
        quick, whole = acceptors(dice)
        stamp = Stamp(ALICE, is_kept=True)
        quick.stamp = whole.stamp = stamp
        envelopes = [envelope_of(dice) for _ in range(3)]
        for _ in range(60):
            _, *ends = dice.choice(envelopes)
            number = dice.choice((*[b'"id":7'] * 7, b'"id":"7"'))
            line = odd(dice, [number, *ends], body_of(dice))
            familiar += quick.familiar(line) is not None
            assert list(map(shown, quick.read(line))) == list(map(shown, whole.read(line))), line
            assert quick.dialect == whole.dialect
            assert quick.dialect.names == whole.dialect.names
            assert quick.has_shown == whole.has_shown
    assert familiar > EXAMPLES / 80
