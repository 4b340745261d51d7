"""A quality broker and a global registry behind HTTP, as small state machines."""

from collections.abc import Callable

import attrs
import trio

from tests.support.node.http_server import Call, HttpServer, Said

GONE = Said(404, {"message": "Not Found"})


@attrs.define
class QualityServer:
    """Grants so many relays; the same name again is granted the same.

    Attributes:
        free: How many are left.
        held: What is granted, by name.
        mood: What to do instead of answering; None: answer.
        held_up: What answers wait for, after the request has been done.
        server: Where it is served.
        servers: What it says of its servers to those that inquire.
    """

    free: int = 2
    held: dict[str, dict] = attrs.field(factory=dict)
    mood: Callable[[Call], Said | None] | None = None
    held_up: trio.Event | None = None
    server: HttpServer | None = None
    servers: list[dict] = attrs.field(factory=lambda: [{"urls": ["stun:198.51.100.7:3478"]}])

    async def __call__(self, call: Call) -> Said:
        moody = None if self.mood is None else self.mood(call)
        said = self._answer(call) if moody is None else moody
        if self.held_up is not None:
            await self.held_up.wait()
        return said

    def _answer(self, call: Call) -> Said:
        match (call.method, *call.segments):
            case ("PUT", "reservations", name):
                return self._grant(name, call.body)
            case ("GET", "resources") if self.free == 0:
                return Said(503, {"message": "no resources"})
            case ("GET", "resources"):
                return Said(200, {"servers": self.servers})
            case ("GET", "reservations", name):
                return Said(200, self.held[name]) if name in self.held else GONE
            case ("DELETE", "reservations", name) if name in self.held:
                del self.held[name]
                self.free += 1
                return Said(204)
            case _:
                return GONE

    def _grant(self, name: str, wanted: dict) -> Said:
        if name not in self.held:
            if self.free == 0:
                return Said(503, {"message": "no resources"})
            self.free -= 1
            self.held[name] = {"username": name[:4], "wanted": wanted}
        opened = {"turn": "turn:198.51.100.7:3478", "username": name[:4], "credential": "secret"}
        return Said(200, opened)


@attrs.define
class GlobalServer:
    """Signed records by GUID; a record of another user under the same GUID is a conflict."""

    records: dict[str, str] = attrs.field(factory=dict)
    conflicts: set[str] = attrs.field(factory=set)
    form: Callable[[str], Said] = lambda token: Said(200, {"responseCode": 200, "data": token})

    async def __call__(self, call: Call) -> Said:
        match (call.method, *call.segments):
            case ("GET", "guid", guid):
                return self.form(self.records[guid]) if guid in self.records else GONE
            case ("PUT", "guid", guid) if guid in self.conflicts:
                return Said(409, {"message": "conflict"})
            case ("PUT", "guid", guid):
                self.records[guid] = call.body
                return Said(200, {"message": "kept"})
            case _:
                return GONE
