"""A thief on real sockets, who has read the documents and overheard everything but the key.

Victim and thief are WebSocket clients written by hand, the node is a process of its own.
"""

import json
import struct
from contextlib import asynccontextmanager

import jwt
import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import ec

from tests.actors.node.key_holder import KeyHolder
from tests.support.command import serving
from tests.support.wire.raw_websocket import handshake, text

RA, SESSION = "hyperty-runtime://a.example/ra", "domain://msg-node.a.example/session"
NODE = ("node", "--domain", "a.example")


class Client:
    """One WebSocket link; what it cannot read is an error of the test."""

    def __init__(self, stream):
        self.stream, self.unread, self.runtime, self.number, self.token = stream, b"", RA, 0, ""

    async def control(self, method, **params):
        self.number += 1
        asked = {
            "id": self.number, "type": "execute", "from": f"{RA}/stub", "to": SESSION,
            "body": {"method": method, "params": params},
        }  # fmt: skip
        await self.stream.send_all(text(json.dumps(asked).encode()))
        with trio.fail_after(20):
            answer = json.loads(await self.frame())
        assert answer["id"] == self.number
        return Answer(answer["body"])

    async def frame(self):
        first = await self.exactly(2)
        size = first[1]
        if size == 126:
            [size] = struct.unpack("!H", await self.exactly(2))
        assert first[0] == 0x81
        return await self.exactly(size)

    async def exactly(self, size):
        while len(self.unread) < size:
            self.unread += await self.stream.receive_some()
        data, self.unread = self.unread[:size], self.unread[size:]
        return data

    async def upgraded(self):
        await self.stream.send_all(handshake())
        while b"\r\n\r\n" not in self.unread:
            self.unread += await self.stream.receive_some()
        head, _, self.unread = self.unread.partition(b"\r\n\r\n")
        assert b" 101 " in head
        return self


class Answer:
    def __init__(self, body):
        self.body, self.code = body, body["code"]


@asynccontextmanager
async def client(node):
    host, port = node.url.removeprefix("ws://").removesuffix("/link").split(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        yield await Client(stream).upgraded()


@pytest.fixture
def issuer(tmp_path):
    """An identity provider: where its public keys are, and what makes tokens."""
    private = ec.generate_private_key(ec.SECP256R1())
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(private.public_key()))
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [{**public, "kid": "k", "alg": "ES256"}]}))

    def token(holder):
        claims = {
            "iss": "https://idp.example", "sub": "alice", "aud": "a.example", "iat": 1, "jti": "1",
            "exp": 4_000_000_000, "cnf": {"jkt": holder.thumbprint},
        }  # fmt: skip
        return jwt.encode(claims, private, "ES256", headers={"kid": "k"})

    return ("--jwks", str(path), "--max-token-life", "4000000000"), token


def proof(holder, challenge, token, method):
    return holder.proof(challenge, RA, token, method, domain="a.example")


async def proven(holder, link, method, token):
    challenge = await holder.challenged(link, method, token)
    shown = holder.shown(RA, token, proof=proof(holder, challenge, token, method))
    return await link.control(method, **shown)


async def test_a_thief_gets_nothing_without_the_key(issuer):
    options, token_for = issuer
    owner, eve = KeyHolder(), KeyHolder()
    token = token_for(owner)

    async with serving(*NODE, *options, "--max-failed-opens", "100") as node:
        async with client(node) as victim, client(node) as thief:
            # The login token: without a key, with another key, with an overheard proof.
            assert (await thief.control("open", runtimeURL=RA, token=token)).code == 401
            assert (await proven(eve, thief, "open", token)).code == 401
            challenge = await owner.challenged(victim, token=token)
            heard = owner.shown(RA, token, proof=proof(owner, challenge, token, "open"))
            await owner.challenged(thief, token=token)
            assert (await thief.control("open", **heard)).code == 401

            opened = await victim.control("open", **heard)
            assert opened.code == 200

            # The token of the session: the same again.
            session = opened.body["value"]["sessionToken"]
            assert (await thief.control("re-open", runtimeURL=RA, token=session)).code == 401
            for method in ("open", "re-open"):
                answer = await proven(eve, thief, method, session)
                assert answer.code == 401
            assert (await victim.control("ping")).code == 200

        async with client(node) as again:
            resumed = await proven(owner, again, "re-open", session)
            assert resumed.code == 200

    [key] = jwt.PyJWKSet.from_dict(resumed.body["value"]["domainKeys"]).keys
    said = jwt.decode(resumed.body["value"]["statement"], key, ["EdDSA"], issuer="a.example")
    assert said["sub"] == RA
    assert said["cnf"] == {"jkt": owner.thumbprint}
    assert said["user"] == "user://idp.example/alice"
