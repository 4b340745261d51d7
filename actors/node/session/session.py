"""The session of a runtime, as the parts of the bus see it."""

from typing import Protocol, TypeAlias

from actors.node.links.port import Port
from actors.node.policy_hook import Asker
from fsm.effects import Refused
from fsm.session.node_session import NodeSessionCore
from fsm.session.node_session_io import Granted, KeptSession, Liveness, SessionRequest
from specs.identity import Identity

Outcome: TypeAlias = Granted | Refused | None
"""What became of a request for the session; None: it has ended meanwhile."""


class Session(Protocol):
    """A runtime's session and the link that has it; part of the bus's task.

    Attributes:
        asker: What policy may know of the sender over this session.
        port: The link that has the session; None while detached.
    """

    core: NodeSessionCore
    stub: str
    asker: Asker
    port: Port | None

    @property
    def identity(self) -> Identity | None:
        """The identity of the login that opened it; None: there was none."""

    def open(self, request: SessionRequest) -> Outcome: ...
    def reopen(self, request: SessionRequest) -> Outcome: ...
    def claim(self, link: int, liveness: Liveness) -> Outcome: ...
    def restore(
        self, kept: KeptSession, *, is_of_other: bool = False, is_followed: bool = False
    ) -> None: ...
    def close(self, link: int) -> None: ...
    def leave(self) -> None: ...
    def move_away(self, why: str) -> None: ...
    def tick(self) -> None: ...
