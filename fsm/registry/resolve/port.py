"""What the registry's route search asks of its host (RES-01..15)."""

from typing import TypeAlias

import attrs

from fsm.effects import Intent, RowChanged
from fsm.engine import Step
from specs.reply_code import Code


@attrs.frozen(slots=True)
class NodePlan:
    """The domain that a stub is deployed for: to its node, or its identity provider (PFY-12).

    Attributes:
        is_again: Whether an earlier stub to the node had a session and has failed.
    """

    domain: str
    is_idp: bool = False
    is_again: bool = False


@attrs.frozen(slots=True)
class RequesterPlan:
    """The purpose of a P2P requester (RES-08).

    Attributes:
        descriptor: Catalogue address of the stub, from the record's `p2pRequester`.
    """

    remote: str
    handler: str
    descriptor: str


StubPlan: TypeAlias = NodePlan | RequesterPlan


class RoutesPort:
    """The host of a route search; a method does nothing where no host overrides it.

    None calls the search back: what does so waits until the input has been taken.
    """

    # ---- trace

    def step(self, step: Step) -> None:
        """Trace a step of a machine."""

    def row(self, row: RowChanged) -> None:
        """Trace a row that has changed."""

    def refuse_stub(self, address: str, why: str) -> None:
        """Report that a record names a stub of another kind than is to be deployed."""

    def refuse_hint(self, entity: str, why: str) -> None:
        """Report that a hint how to link to an entity is not confirmed by its record (RES-16)."""

    # ---- answers to the Message BUS

    def route(self, to: str, intent: Intent, url: str, until: float, why: str) -> None:
        """Answer `ask` with the stub or link that leads there.

        It may be remembered until then, unless `forget_routes` is called before.
        """

    def no_route(
        self, to: str, intent: Intent, code: Code, why: str, retry_after: float | None = None
    ) -> None:
        """Answer `ask`: requests are refused with this, once each (RES-14)."""

    def forget_routes(self) -> None:
        """Forget every route that was answered."""

    def release(self, url: str, domain: str, number: int) -> None:
        """Forget the routes by an idle stub, unless something depends on it; `stub_released`.

        Open requests depend on it, and subscriptions in its domain. Numbers are not used twice.
        """

    def add_peer(self, link: str, remote: str) -> None:
        """Take messages of a runtime over a link (I-B10)."""

    def remove_peer(self, link: str) -> None:
        """Take no more messages over a link."""

    def set_owner(self, entity: str, owner: str | None) -> None:
        """Answer `ask_owner`; None: no registry names an owner."""

    def forget_owner(self, entity: str) -> None:
        """Forget that answer: the owner may have changed."""

    # ---- stubs

    def deploy(self, url: str, plan: StubPlan) -> None:
        """Deploy a stub; `stub_deployed` or `stub_failed` follows."""

    def undeploy(self, url: str) -> None:
        """Remove a stub with all its listeners (STB-16)."""

    def set_own_node(self, stub: str, *, is_live: bool, end: str | None = None) -> None:
        """Report that the connection to the own node is live, or no longer (REG-12).

        With the reason `end` it is over for good; else the stub connects again.
        """

    def renew_paths(self, domain: str, session: str | None) -> None:
        """Set all paths at the node of a domain again: it has a new session of ours."""

    # ---- requests

    def read_record(self, entity: str) -> None:
        """Read a record at the registry of its domain (M-25, I-R10); `record_read` follows."""

    def read_owner(self, entity: str) -> None:
        """Read a record for the owner that it names (M-25); `owner_read` follows."""

    def set_path(self, url: str) -> None:
        """Have the own node deliver `url` here (M-03); `path_set` follows."""

    def remove_path(self, url: str) -> None:
        """Have the own node forget `url` (M-04)."""

    # ---- direct links

    def register_link(self, link: str, handler: str) -> None:
        """Set the handler-side listeners of a link (M-05, I-P17); `link_registered` follows."""

    def unregister_link(self, link: str) -> None:
        """Remove the Message BUS listener of a link (I-P19)."""

    def connect(self, stub: str, handler: str) -> None:
        """Order a requester to restore its link (M-11)."""

    def disconnect(self, stub: str, remote: str, link: str) -> None:
        """Order a P2P stub to end one link (M-12); other links of the stub stay."""

    def suspend(self, stub: str, remote: str) -> None:
        """Order a requester to yield until the peer's link is live or has failed (P2P-27)."""

    def resume(self, stub: str, remote: str) -> None:
        """Order a requester that yields to go on: the peer's link has failed (P2P-27)."""

    def link_up(self, remote: str, link: str) -> None:
        """Exchange lists of entities over a link, which is live now (P2P-23)."""

    def link_down(self, remote: str) -> None:
        """Stop that: the link is no longer live; it may come back."""

    def link_gone(self, remote: str) -> None:
        """Forget the entities of a runtime: it has no entry any more."""
