"""The holder of a key, as the documents describe it; it shares no code with the node."""

import base64
import hashlib
import json

import attrs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from specs.message import Message


def base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@attrs.frozen
class KeyHolder:
    """Signs challenges, also such as it was never given."""

    private: Ed25519PrivateKey = attrs.field(factory=Ed25519PrivateKey.generate)

    @property
    def public(self) -> str:
        return base64url(self.private.public_key().public_bytes_raw())

    @property
    def thumbprint(self) -> str:
        jwk = f'{{"crv":"Ed25519","kty":"OKP","x":"{self.public}"}}'
        return base64url(hashlib.sha256(jwk.encode()).digest())

    def signature(self, purpose: str, *parts: str) -> str:
        signed = json.dumps(["protofly/1", purpose, *parts], separators=(",", ":"))
        return base64url(self.private.sign(signed.encode()))

    def proof(
        self, challenge: str, runtime: str, token: str | None, method: str, domain: str = "a.ex"
    ) -> str:
        digest = "" if token is None else hashlib.sha256(token.encode()).hexdigest()
        return self.signature(method, domain, runtime, challenge, digest)

    async def challenged(self, peer, method: str = "open", token: str | None = None) -> str:
        """Show the key on a link; return the challenge of the node."""
        answer = await peer.control(method, **self.shown(peer.runtime, token))
        assert answer.code == 401, answer.body
        return answer.body["value"]["challenge"]

    def shown(self, runtime: str, token: str | None = None, **more: object) -> dict:
        named = {} if token is None else {"token": token}
        return {"runtimeURL": runtime, "key": self.public, **named, **more}

    async def enter(self, peer, token: str | None = None, method: str = "open") -> Message:
        """Open or re-open a session with a proof; if it is given, the peer knows its token."""
        challenge = await self.challenged(peer, method, token)
        proof = self.proof(challenge, peer.runtime, token, method)
        answer = await peer.control(method, **self.shown(peer.runtime, token, proof=proof))
        if answer.code == 200:
            peer.token = answer.body["value"]["sessionToken"]
        return answer
