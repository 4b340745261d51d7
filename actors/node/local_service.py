"""A part of the node that answers on the spot, inside the bus's task."""

from abc import ABC, abstractmethod

from specs.message import Message

__all__ = ["Desk"]


class Desk(ABC):
    """Answers requests at one address of the node, without waiting for anything."""

    @abstractmethod
    def receive(self, message: Message, by: str) -> Message | None:
        """Answer a request that came over the session of `by`; None: it is answered later.

        Raises:
            BadMessageError: Its body is not what the catalogue says.
        """
