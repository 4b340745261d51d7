"""RELIABILITY F2: whatever a peer writes is read, refused or learnt from; nothing else is raised.

A seeded loop over the frames of the attack test (`tests/fuzz`), without sockets.
"""

from random import Random

from specs.dialects.normalise import normalise
from specs.message import Message
from tests.fuzz.mutation import Mutator
from transports.codec import decode_frame, encode, read_object


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
