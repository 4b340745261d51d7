"""What a sandbox tells of messages, taken into the evidence of whoever keeps it."""

from typing import Final

from actors.kit.counting.counters import Counters
from actors.kit.trace import More, Tracer
from actors.pipe.errors import PipeError
from actors.pipe.said import Said
from specs.reply_code import DropReason
from specs.trace import Op
from transports.codec import BadLine, decode_line

__all__ = ["count_drops", "keep_hop"]

_OPS: Final = frozenset({Op.DELIVER, Op.XMIT, Op.RCV, Op.QUEUE, Op.FLUSH, Op.DROP})
_LONGEST: Final = 2048

_MANY: Final = 10_000
"""More drops than this between two signs of life are no count."""


def keep_hop(tracer: Tracer, stub: str, said: Said) -> None:
    """Keep what happened to a message in a sandbox; only of its own parts may it tell.

    Raises:
        PipeError: It tells of others, or of what does not happen in a sandbox.
    """
    message = decode_line(said.rest)
    op = said.get("op")
    if said.text not in {f"stub:{stub}", f"minibus:{stub}"} or op not in _OPS:
        raise PipeError("evidence that is not a sandbox's to give")
    if said.get("stub") not in {"", stub} or isinstance(message, BadLine):
        raise PipeError("evidence of a message that is none of its stub's")
    more: More = {}
    if said.get("stub"):
        more["stub"] = stub
    if said.get("link"):
        more["link"] = said.get("link")[:_LONGEST]
    if said.get("listener"):
        more["listener"] = said.get("listener")[:_LONGEST]
    if said.get("reason") in set(DropReason):
        more["reason"] = said.get("reason")
    tracer.message(said.text, Op(op), message, **more)


def count_drops(counters: Counters, said: Said) -> None:
    """Count what was dropped in a sandbox since it said so last.

    Raises:
        PipeError: It gives a reason that there is not, or a count that is none.
    """
    for reason, count in said.told.items():
        # A boolean is an int to Python, and no count.
        if reason not in set(DropReason) or type(count) is not int or not 0 < count <= _MANY:
            raise PipeError("a count of what nobody counts")
        counters.dropped_elsewhere(DropReason(reason), count)
