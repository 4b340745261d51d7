"""Lines of a P2P link that are no messages: proof of the secret, and control.

Such a line is a JSON object whose first key is `p2p`; a message never begins so.
"""

from typing import Final, assert_never

import orjson

from fsm.p2p.proof import Hello, Opened, Proof, ProofError, ProofLine, Welcome
from fsm.p2p.transfer import Ack, Behind, Bye, Control, Ping, Pong
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.limits.p2p import ORDER_SENT

__all__ = [
    "is_own_line",
    "read_control",
    "read_proof",
    "write_behind",
    "write_control",
    "write_proof",
]

_MARK: Final = "p2p"
_PREFIX: Final = b'{"p2p":'


def is_own_line(line: bytes) -> bool:
    """Say whether a line is one of ours, not a message."""
    return line.startswith(_PREFIX)


def write_control(control: Control) -> bytes:
    """Write a control line, without a newline."""
    match control:
        case Ack(seq):
            return b'{"p2p":"ack","seq":%d}' % seq
        case Ping():
            return b'{"p2p":"ping"}'
        case Pong():
            return b'{"p2p":"pong"}'
        case Bye():
            return b'{"p2p":"bye"}'
        case _:
            assert_never(control)


def write_behind(behind: Behind) -> bytes:
    """Write an announcement of what a pair's messages follow, without a newline (C-20)."""
    said: dict[str, Json] = {_MARK: "behind", "from": behind.from_, "to": behind.to}
    if behind.last is not None:
        said |= {"last": behind.last, "top": behind.top, "age": round(behind.age, 3)}
        said["answers"] = list[Json](sorted(behind.answers))
    return orjson.dumps(said)


def read_control(line: bytes) -> Control | Behind:
    """Read a control line.

    Raises:
        BadMessageError: It is none.
    """
    fields = _fields(line)
    match fields:
        case {"p2p": "ack", "seq": int(seq)}:
            return Ack(seq)
        case {"p2p": "ping"}:
            return Ping()
        case {"p2p": "pong"}:
            return Pong()
        case {"p2p": "bye"}:
            return Bye()
        case {"p2p": "behind", "from": str(from_), "to": str(to), "last": int() | str() as last}:
            return Behind(from_, to, last, *_place(fields))
        case {"p2p": "behind", "from": str(from_), "to": str(to)}:
            return Behind(from_, to)
        case _:
            raise BadMessageError("not a control line of a P2P link")


def _place(fields: dict[str, Json]) -> tuple[int, float, frozenset[int]]:
    match fields:
        case {
            "top": int(top),
            "age": int() | float() as age,
            "answers": list(answers),
        } if age >= 0 and len(answers) <= ORDER_SENT:
            ids = frozenset(one for one in answers if isinstance(one, int))
            if len(ids) == len(answers):
                return top, age, ids
        case _:
            pass
    raise BadMessageError("an announcement on a P2P link lacks its top, its age or its answers")


def write_proof(line: ProofLine) -> bytes:
    """Write a line of the proof, without a newline."""
    match line:
        case Hello(nonce, tag):
            return _proof("hello", nonce=nonce, tag=tag)
        case Welcome(nonce, proof):
            return _proof("welcome", nonce=nonce, proof=proof)
        case Proof(proof):
            return _proof("proof", proof=proof)
        case Opened():
            return _proof("opened")
        case _:
            assert_never(line)


def read_proof(frame: bytes) -> ProofLine:
    """Read a frame that must hold one line of the proof.

    Raises:
        ProofError: It does not: the peer is a stranger.
    """
    try:
        match _fields(frame):
            case {"p2p": "hello", "nonce": str(nonce), "tag": str(tag)}:
                return Hello(bytes.fromhex(nonce), bytes.fromhex(tag))
            case {"p2p": "welcome", "nonce": str(nonce), "proof": str(proof)}:
                return Welcome(bytes.fromhex(nonce), bytes.fromhex(proof))
            case {"p2p": "proof", "proof": str(proof)}:
                return Proof(bytes.fromhex(proof))
            case {"p2p": "opened"}:
                return Opened()
            case _:
                raise ProofError("not a line of the proof")
    except (ValueError, BadMessageError) as exc:
        raise ProofError("not a line of the proof") from exc


def _proof(word: str, **parts: bytes) -> bytes:
    return orjson.dumps({_MARK: word, **{name: part.hex() for name, part in parts.items()}})


def _fields(line: bytes) -> dict[str, Json]:
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise BadMessageError("not JSON") from exc
    if not isinstance(fields, dict):
        raise BadMessageError("not a JSON object")
    return fields
