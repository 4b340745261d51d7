"""A hyperty that asks another when it is ordered to: for runtimes in processes of their own."""

from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty
from specs.jsonvalue import Json
from specs.message import Message


class Asker(Hyperty):
    """Asks `to` for each request with `{"to": ...}`, and answers with the code it got."""

    @override
    async def on_request(self, message: Message) -> Json:
        reported = message.body.get("value")
        assert isinstance(reported, dict)
        return int((await self.request(str(reported["to"]), reported)).code)
