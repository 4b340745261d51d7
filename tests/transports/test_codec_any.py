"""RELIABILITY F2: whatever a peer writes is read, refused or learnt from; nothing else is raised.

A seeded loop over the frames of the attack test (`tests/fuzz`), without sockets.
"""

from collections import Counter
from random import Random

import pytest

from specs.dialects.dialect import PLAIN, Dialect, dialect_of
from specs.dialects.normalise import normalise
from specs.message import Message
from tests.fuzz.mutation import Mutator
from tests.support.chance import examples
from transports.codec import BadLine, decode_frame, encode, glance, read_object

EXAMPLES = examples(40_000)
CHUNKS = 4
DIALECTS = (
    PLAIN,
    Dialect(string_ids=True, runtime_alias=True),
    Dialect(upper_types=True, list_key="subscribe", text_key="desc"),
    Dialect(allocation="object-address-allocation", text_key="Message"),
)


def read_again(message: Message, dialect: Dialect) -> Message:
    (again,) = decode_frame(encode(message, dialect))
    return again


@pytest.mark.chance
@pytest.mark.timeout(200)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_any_text_is_a_message_or_a_bad_line_and_messages_round_trip(chunk):
    """MSG-09, MSG-18, N3, I-T10: in normal form, a fixed point, the same in every dialect."""
    dice = Random(chunk)  # noqa: S311 - chance, no secret
    mutator = Mutator(dice, "hyperty-runtime://a.ex/x")
    seen: Counter[type] = Counter()
    for number in range(EXAMPLES // CHUNKS):
        shot = mutator.shot(0.0)
        if shot.text is None:
            continue
        for one in decode_frame(shot.text):
            seen[type(one)] += 1
            reported = one if isinstance(one, Message) else one.answer
            if reported is not None:
                dialect = DIALECTS[number % len(DIALECTS)]
                assert read_again(reported, dialect) == reported, shot.text
        dialect = dialect_of(glance(shot.text), PLAIN)
        assert isinstance(dialect, Dialect)
    assert seen[Message] > seen[BadLine] / 4 > 100


def test_a_look_at_what_a_peer_wrote_never_fails():
    """N3: for its spelling only."""
    assert glance(b"{") == {}
    assert glance(b"[]") == {}
    assert glance(b'{"id":"7","x":"' + b"y" * 20_000 + b'"}')["id"] == "7"


def test_a_normal_message_is_read_unchanged():
    """MSG-18: normalising twice is normalising once."""
    mutator = Mutator(Random(5), "hyperty-runtime://a.ex/x")  # noqa: S311 - chance, no secret
    found = 0
    for _ in range(2_000):
        text = mutator.shot(0.0).text
        for one in decode_frame(text or b""):
            if isinstance(one, Message):
                found += 1
                again = normalise(read_object(encode(one)))
                assert again == one
    assert found > 500
