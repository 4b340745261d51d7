"""Somebody who issues login tokens, and who forges them: every part can be written as wished."""

import base64
import json
from pathlib import Path

import attrs
import trio
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from actors.keys.key_source import KeysAwayError, KeySource
from actors.node.login.key_provider import by_keys, terms_of
from actors.node.login.provider import Login

ISSUER = "https://idp.ex"
ALICE = "user://idp.ex/alice"
BOB = "user://idp.ex/bob"


def encoded(part: object) -> str:
    text = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


@attrs.define
class Issuer:
    """Signs with one key; `now` is what its clock says."""

    key: OKPKey | ECKey | RSAKey = attrs.field(factory=lambda: OKPKey.generate_key("Ed25519"))
    algorithm: str = "EdDSA"
    name: str = "k1"
    domain: str = "a.ex"
    now: float = 0.0
    issued: int = 0
    alg: str | None = None

    @classmethod
    def es256(cls, name: str = "k1") -> "Issuer":
        return cls(ECKey.generate_key("P-256"), "ES256", name)

    def public(self) -> dict:
        """Return the key as the set has it, with `alg` if the issuer says one."""
        alg = {} if self.alg is None else {"alg": self.alg}
        return {**self.key.as_dict(private=False), "kid": self.name, "use": "sig", **alg}

    def jwks(self, *others: "Issuer") -> bytes:
        return json.dumps({"keys": [one.public() for one in (self, *others)]}).encode()

    def claims(self, **changed: object) -> dict:
        """What a good token says; None leaves a claim out."""
        self.issued += 1
        good = {
            "iss": ISSUER,
            "sub": ALICE,
            "aud": self.domain,
            "iat": self.now,
            "exp": self.now + 300,
            "jti": f"{self.name}-{self.algorithm}-{self.issued}",
        }
        return {name: value for name, value in {**good, **changed}.items() if value is not None}

    def token(self, header: dict | None = None, **changed: object) -> str:
        return self.signed(self.claims(**changed), header)

    def signed(self, claims: object, header: dict | None = None) -> str:
        """Sign whatever is given; `header` changes the usual one, None leaves out."""
        usual = {"alg": self.algorithm, "kid": self.name, "typ": "JWT", **(header or {})}
        plain = {name: value for name, value in usual.items() if value is not None}
        text = f"{encoded(plain)}.{encoded(claims)}"
        signature = JWSRegistry.algorithms[self.algorithm].sign(text.encode(), self.key)
        return f"{text}.{encoded(signature)}"


@attrs.define
class FakeKeySource(KeySource):
    """Keys that a test lays out, and takes away."""

    text: bytes
    name = "the shelf"
    fresh: float = 300.0
    pause: float = 5.0
    delay: float = 0.0
    why: str = ""
    fetched: int = 0
    closed: bool = False

    async def fetch(self):
        self.fetched += 1
        await trio.sleep(self.delay)
        if self.why:
            raise KeysAwayError(self.name, self.why)
        return self._read(self.text)

    async def aclose(self) -> None:
        self.closed = True


def login_by(issuer: Issuer, shelf: FakeKeySource | None = None, **more: object) -> Login:
    """Let in who has a token of this issuer; its clock is the test's."""
    return Login(
        provider=by_keys(shelf or FakeKeySource(issuer.jwks()), terms_of(issuer.domain)), **more
    )


def written(path: Path, text: bytes | str) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


async def opened(peer, token):
    """Ask for a session with this token; if it is given, the peer knows its token."""
    answer = await peer.control("open", runtimeURL=peer.runtime, token=token)
    if answer.code == 200:
        peer.token = answer.body["value"]["sessionToken"]
    return answer
