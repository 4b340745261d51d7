"""A push service as RFC 8030 and RFC 8292 describe it, for the devices of a test."""

import base64
from urllib.parse import urlsplit

import attrs
import jwt
import trio
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

from tests.support.node.http_server import Call, HttpServer, Said


@attrs.define
class PushService:
    """Takes calls for devices, and keeps them until the device asks.

    Attributes:
        permitted: Key of the only sender that a device permits, by device (RFC 8292, section 4).
        refusal: Status that all calls are answered with; None: they are judged.
        stalling: Devices whose calls are not answered.
        stalled: How many calls of these came.
    """

    permitted: dict[str, str] = attrs.field(factory=dict)
    refusal: int | None = None
    stalling: set[str] = attrs.field(factory=set)
    stalled: int = 0
    server: HttpServer | None = None
    _kept: dict[str, list[bytes]] = attrs.field(factory=dict)
    _arrived: trio.Event = attrs.field(factory=trio.Event)

    def endpoint(self, device: str, key: str) -> str:
        """Give a device its URL; only the owner of a key may call it."""
        self.permitted[device] = key
        self._kept[device] = []
        return f"{self.server.url}/push/{device}"

    async def next(self, device: str) -> bytes:
        """Return the next call for a device."""
        while not self._kept[device]:
            await self._arrived.wait()
        return self._kept[device].pop(0)

    def waiting(self, device: str) -> int:
        return len(self._kept[device])

    async def __call__(self, call: Call) -> Said:
        await trio.lowlevel.checkpoint()
        if self.refusal is not None:
            return Said(self.refusal)
        kind, device = call.segments
        if device in self.stalling:
            self.stalled += 1
            await trio.sleep_forever()
        if kind != "push" or device not in self._kept:
            return Said(404)
        if call.method != "POST" or "ttl" not in call.headers:
            return Said(400)
        if call.headers.get("content-encoding") != "aes128gcm" or len(call.body) > 4096:
            return Said(400)
        if not self._is_sender(call.headers.get("authorization", ""), self.permitted[device]):
            return Said(403)
        self._kept[device].append(call.body)
        self._arrived.set()
        self._arrived = trio.Event()
        return Said(201, headers=(("location", f"{self.server.url}/message/1"),))

    def _is_sender(self, header: str, key: str) -> bool:
        scheme, _, rest = header.partition(" ")
        parts = dict(one.strip().split("=", 1) for one in rest.split(","))
        if scheme != "vapid" or parts.get("k") != key:
            return False
        raw = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4))
        public = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), raw)
        own = "{0.scheme}://{0.netloc}".format(urlsplit(self.server.url))
        claims = jwt.decode(parts["t"], public, algorithms=["ES256"], audience=own)
        return claims["sub"].startswith(("mailto:", "https:"))
