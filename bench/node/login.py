"""Processor time of a node for one login, and for the identity that a message gets by it.

In one process, over links in memory: a session opened by a token against one that is opened
without; and of this, how long the token itself is read, verified and judged. A session that is
opened with a proof takes two requests, and the answer brings a statement of the domain.
A message is read and written again, with the identity of its sender and without.
The seconds are of the processor; both ends of the link are in them.
"""

import json
import secrets
import time
from statistics import median
from typing import Final, final

import attrs
import click
import trio
from typing_extensions import override

from actors.keys.key_set import ALGORITHMS, Keys, read_keys
from actors.keys.key_source import KeySource
from actors.keys.runtime_key import RuntimeKey, make_runtime_key
from actors.keys.signing import SigningKey, make_key
from actors.kit.log import Level, configure_log
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.node.limits import UNLIMITED
from actors.node.login.key_provider import KeyProvider, by_keys, terms_of
from actors.node.login.provider import Login
from bench.verdict import Verdict
from fsm.session.possession import signed_parts
from specs.addresses import address
from specs.bodies.session import SessionControl, SessionParams
from specs.identity import NOBODY, SenderIdentity, Stamp, VouchedBy
from specs.jsonvalue import JsonObject
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import write_body
from transports.codec import BadLine, decode_frame, decode_line, encode
from transports.link import Kind, Link
from transports.memory import MemoryNetwork

_DOMAIN: Final = "a.example"
_ROUNDS: Final = 300
_MESSAGES: Final = 2000
_PROOF_US, _STAMP_US = 2000.0, 1.0
"""The most that a login with a proof, and the identity of one message, may cost."""
_ALGORITHMS: Final = ALGORITHMS


@final
class _Given(KeySource):
    """Keys that are at hand."""

    name = "given"
    fresh = pause = 3600.0

    def __init__(self, key: SigningKey) -> None:
        self._keys = read_keys(json.dumps({"keys": [key.public()]}).encode())

    @override
    async def fetch(self) -> Keys:
        await trio.lowlevel.checkpoint()
        return self._keys

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(*, as_json: bool) -> None:
    """Measure logins by each algorithm."""
    configure_log(Level.ERROR)
    without = trio.run(_opens, None)
    by_algorithm = {algorithm: _taken(make_key(algorithm)) for algorithm in _ALGORITHMS}
    ours = by_algorithm[_ALGORITHMS[0]]["open_us"]
    proven = trio.run(_opens, make_key(_ALGORITHMS[0]), make_runtime_key())
    stamp = _stamp_us()
    costs = {"login with a proof": (proven, _PROOF_US), "identity of a message": (stamp, _STAMP_US)}
    Verdict(
        bench="login",
        what=f"us of CPU to open a session by a token of {_ALGORITHMS[0]} / without one",
        ours=ours,
        peer=without,
        ratio=ours / without,
        reach=None,
        missed=tuple(
            f"{name}: {cost:,.2f} of {most:,.2f} us"
            for name, (cost, most) in costs.items()
            if cost > most
        ),
        not_measured=("keys that are fetched from an issuer", "TLS"),
        figures={
            "algorithms": by_algorithm,
            "open_with_proof_us": round(proven, 1),
            "stamp_us": round(stamp, 2),
        },
    ).tell(as_json=as_json)


def _stamp_us() -> float:
    """Return what the identity of a message costs, in microseconds: the median of rounds."""
    runtime = f"hyperty-runtime://{_DOMAIN}/alice"
    sender = SenderIdentity(runtime, f"user://{_DOMAIN}/alice", VouchedBy.IDENTITY_PROVIDER)
    line = encode(
        Message(
            7,
            MessageType.CREATE,
            f"hyperty://{_DOMAIN}/1",
            f"hyperty://{_DOMAIN}/2",
            {"value": "x" * 60},
        )
    )
    rounds = [_passed(line, Stamp(sender)) - _passed(line, NOBODY) for _ in range(_ROUNDS // 10)]
    return median(rounds)


def _passed(line: bytes, stamp: Stamp) -> float:
    begun = time.process_time()
    for _ in range(_MESSAGES):
        message = decode_line(line, stamp)
        if isinstance(message, Message):
            encode(message)
    return (time.process_time() - begun) / _MESSAGES * 1e6


def _taken(key: SigningKey) -> dict[str, float]:
    return {
        "token_us": round(trio.run(_tokens, key), 1),
        "open_us": round(trio.run(_opens, key), 1),
    }


def _token(key: SigningKey, holder: RuntimeKey | None = None) -> str:
    now = time.time_ns() // 1_000_000_000
    who: JsonObject = {"iss": _DOMAIN, "sub": f"user://{_DOMAIN}/alice", "aud": _DOMAIN}
    more: JsonObject = {} if holder is None else {"cnf": {"jkt": holder.thumbprint}}
    jti = secrets.token_hex(8)
    return key.signed({**who, "iat": now, "exp": now + 300, "jti": jti, **more})


def _now() -> float:
    return time.time_ns() / 1e9


async def _tokens(key: SigningKey) -> float:
    """Return what the provider alone takes, in microseconds."""
    provider = KeyProvider(_Given(key), terms_of(_DOMAIN), _now)
    tokens = [_token(key) for _ in range(_ROUNDS + 1)]
    await provider.validate(tokens.pop(), None)
    begun = time.process_time()
    for token in tokens:
        await provider.validate(token, None)
    return (time.process_time() - begun) / _ROUNDS * 1e6


async def _opens(key: SigningKey | None, holder: RuntimeKey | None = None) -> float:
    """Return what opening a session takes, both ends, in microseconds."""
    login, tokens = None, [""] * _ROUNDS
    if key is not None:
        login = Login(provider=by_keys(_Given(key), terms_of(_DOMAIN)), clock=_now)
        tokens = [_token(key, holder) for _ in range(_ROUNDS)]
    network = MemoryNetwork()
    config = NodeConfig(domain=_DOMAIN, login=login, limits=UNLIMITED)
    spent = 0.0
    async with open_node(config, network, NULL_TRACER) as node:
        for number, token in enumerate(tokens):
            link = await network.dial(Kind.WEBSOCKET, node.url)
            runtime = address.runtime(_DOMAIN, f"r{number}")
            begun = time.process_time()
            answer = await _answer(link, _opening(runtime, token, holder))
            if holder is not None:
                answer = await _answer(link, _opening(runtime, token, holder, answer))
            spent += time.process_time() - begun
            if not isinstance(answer, Message) or answer.code != Code.OK:
                raise SystemExit(f"no session: {answer}")
            await link.aclose()
    return spent / _ROUNDS * 1e6


async def _answer(link: Link, message: Message) -> Message | BadLine:
    await link.send(encode(message))
    [answer] = decode_frame(await link.receive())
    return answer


def _opening(
    runtime: str,
    token: str,
    holder: RuntimeKey | None = None,
    challenged: Message | BadLine | None = None,
) -> Message:
    key = None if holder is None else holder.public
    params = SessionParams(runtime, token or None, key)
    if holder is not None and isinstance(challenged, Message):
        value = challenged.body["value"]
        challenge = str(value["challenge"]) if isinstance(value, dict) else ""
        parts = signed_parts(_DOMAIN, runtime, challenge, token)
        params = attrs.evolve(params, proof=holder.signature("open", parts))
    body = write_body(SessionControl("open", params))
    manager = address.session_manager(_DOMAIN)
    return Message(1, MessageType.EXECUTE, f"{runtime}/protostub/1", manager, body)


if __name__ == "__main__":
    main()
