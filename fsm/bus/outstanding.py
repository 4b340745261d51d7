"""Requests that were given to somebody who may go before they are answered (MN-20, R11)."""

from typing import final

from specs.limits.protocol import REPLY_TIMEOUT, ROOM_OUTSTANDING
from specs.message import Message, instance_id, request_id

__all__ = ["HandedCore"]


@final
class HandedCore:
    """The requests whose answers are awaited from one component.

    Memory: as many as `ROOM_OUTSTANDING`; the oldest are forgotten, and whoever's time to
    wait is over.
    """

    def __init__(self) -> None:
        self._asked: dict[str, tuple[float, Message]] = {}

    def ask(self, request: Message, now: float) -> None:
        """Remember a request that was handed in, as long as its sender waits."""
        asked = self._asked
        while asked:
            oldest = next(iter(asked))
            until, _ = asked[oldest]
            if until > now and len(asked) < ROOM_OUTSTANDING:
                break
            del asked[oldest]
        asked[instance_id(request)] = (now + REPLY_TIMEOUT, request)

    def forget(self, request: Message) -> None:
        """Forget a request that was answered in another way."""
        self._asked.pop(instance_id(request), None)

    def knows(self, request: Message) -> bool:
        """Say whether a request was handed in and not answered since."""
        return instance_id(request) in self._asked

    def asked(self, answer: Message) -> Message | None:
        """Return the request that a message answers, if it was handed in; the final ends it."""
        if not answer.is_response:
            return None
        mid = request_id(answer)
        _, request = self._asked.get(mid, (0.0, None))
        if answer.is_final:
            self._asked.pop(mid, None)
        return request

    def unanswered(self) -> list[Message]:
        """Take out all requests that were not answered."""
        asked, self._asked = self._asked, {}
        return [request for _, request in asked.values()]
