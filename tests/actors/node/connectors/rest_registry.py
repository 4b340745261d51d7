"""A domain registry behind upstream's REST interface, as a state machine of records.

Made from the facts of the protocol's page on upstream's wire forms: paths, required
fields, statuses, answers by URL. It says 404 and 408, and misbehaves when ordered to.
"""

from collections.abc import Callable

import attrs
import trio

from tests.support.node.http_server import Call, HangupError, HttpServer, Said

NEEDED = ("expires", "dataSchemes", "resources", "runtime", "status", "descriptor")
NEEDED_OF_OBJECTS = ("expires", "dataSchemes", "resources", "runtime", "status", "name")
OK, NOT_FOUND, BAD = Said(200, {"message": "done"}), Said(404, {"message": "Not Found"}), Said(400)


@attrs.define
class RestRegistryFake:
    """Hyperties and data objects, apart, as upstream keeps them.

    Attributes:
        mood: What to do instead of answering; None: answer.
        updated: What `GET /registry/updated` will list.
        held_up: What answers wait for.
        server: Where it is served.
    """

    hyperties: dict[str, dict] = attrs.field(factory=dict)
    objects: dict[str, dict] = attrs.field(factory=dict)
    mood: Callable[[Call], Said | None] | None = None
    updated: dict[str, dict] = attrs.field(factory=dict)
    held_up: trio.Event | None = None
    server: HttpServer | None = None

    async def __call__(self, call: Call) -> Said:
        if self.held_up is not None:
            await self.held_up.wait()
        if self.mood is not None:
            moody = self.mood(call)
            if moody is not None:
                return moody
        return self._answer(call)

    def _answer(self, call: Call) -> Said:
        if call.method != "GET":
            return self._write(call)
        if call.segments == ("registry", "updated"):
            listed, self.updated = self.updated, {}
            return Said(200, listed)
        return self._look([*call.segments[1:]], call.query)

    def _write(self, call: Call) -> Said:
        match (call.method, *call.segments):
            case ("PUT", "hyperty", "user", user, url):
                return self._register(user, url, call.body)
            case ("PUT", "hyperty", "dataobject", url):
                return self._register_object(url, call.body)
            case ("PUT", "hyperty", "url", url):
                return self._update(self.hyperties, url, call.body)
            case ("PUT", "dataobject", "url", url):
                return self._update(self.objects, url, call.body)
            case _:
                return NOT_FOUND

    def expire(self, url: str) -> None:
        """Let a record's time be over."""
        self._update(self.hyperties, url, {"status": "disconnected"})

    def _register(self, user: str, url: str, fields: dict) -> Said:
        if any(fields.get(name) is None for name in NEEDED):
            return BAD
        if self.hyperties.get(url, {"userID": user})["userID"] != user:
            return NOT_FOUND
        self.hyperties[url] = {**fields, "hypertyID": url, "userID": user, "startingTime": "now"}
        self.updated[url] = self.hyperties[url]
        return OK

    def _register_object(self, url: str, fields: dict) -> Said:
        if any(fields.get(name) is None for name in NEEDED_OF_OBJECTS):
            return BAD
        self.objects[url] = {**fields, "url": url, "startingTime": "now"}
        return OK

    def _update(self, kept: dict[str, dict], url: str, fields: dict) -> Said:
        if url not in kept:
            return NOT_FOUND
        old = kept[url]["status"]
        kept[url] = {**kept[url], **(fields or {"status": "live"})}
        has_changed = kept[url]["status"] != old
        if has_changed:
            self.updated[url] = kept[url]
        return Said(200, {"statusChanged": str(has_changed).lower(), "message": "updated"})

    def _look(self, way: list[str], query: dict[str, str]) -> Said:
        match way:
            case ("url", url):
                one = self.hyperties.get(url)
                return NOT_FOUND if one is None else Said(_status([one]), one)
            case ("dataobject", "url", url):
                one = self.objects.get(url)
                return NOT_FOUND if one is None else Said(200, one)
            case ("dataobject", field, value, *rest) if rest in ([], ["do"]):
                return _listed(self.objects, field, value, query)
            case ("user" | "guid" | "email" as field, value, *rest) if rest in ([], ["hyperty"]):
                return _listed(self.hyperties, {"user": "userID"}.get(field, field), value, query)
            case _:
                return NOT_FOUND


def _listed(kept: dict[str, dict], field: str, value: str, query: dict[str, str]) -> Said:
    wanted = {name: set(listed.split(",")) for name, listed in query.items()}
    shown = {
        url: one
        for url, one in kept.items()
        if _has(one, field, value) and all(few <= set(one[name]) for name, few in wanted.items())
    }
    if not shown:
        return NOT_FOUND
    return Said(_status(shown.values()) if field != "email" else 200, shown)


def _has(one: dict, field: str, value: str) -> bool:
    if field == "email":
        host, name = one["userID"].removeprefix("user://").split("/")
        return value == f"{name}@{host}"
    return one.get(field) == value


def _status(records) -> int:
    return 408 if all(one["status"] == "disconnected" for one in records) else 200


def hanging_up(call: Call) -> Said | None:
    """Die in the middle of every request."""
    raise HangupError
