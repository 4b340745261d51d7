"""Rights of a message node's sessions: addresses to send from and to observe (I-A3, I-B10, S3).

A session may use addresses of its own domain only. Which of them it may use, if its domain is not
that of the node, depends on the kind of the session, on whether this node has a connection to the
other domain's node, and on whether runtimes log in here:

| session of | connected to its node | logins | addresses that it may use |
|---|---|---|---|
| the other domain's node, or this node's stub for that node | - | - | all of its domain |
| a runtime of the other domain | yes | - | none: messages come by its node instead |
| a runtime of the other domain | no | no | its own, and those of its domain without an owner |
| a runtime of the other domain | no | yes | those named by a login issuer of its domain |

The functions read the table of addresses and change nothing.
"""

from collections.abc import Callable, Container
from enum import Enum
from typing import Final, final

import attrs

from fsm.registry.allocation import AllocationCore
from fsm.session.node_session_io import PeerForm
from fsm.sync.subscriptions import entity_of
from specs.addresses.address import (
    NO_OBJECT_SCHEMES,
    RUNTIME_SCHEME,
    domain_of,
    is_backend,
    is_below,
    is_node,
    message_node,
    runtime_of,
    scheme_of,
)
from specs.child import is_all_children
from specs.identity import Identity, speaks_for

CHILDREN: Final = "/children/"
"""The part of a child's address between the object's address and the children's name (ADR-05)."""

_ASKED_FOR: Final = frozenset({"/changes", "/observers"})
"""Address suffixes of a data object to which others may subscribe if its owner consents."""

_PUBLIC: Final = "/registration"
"""The address suffix under which the status of a registry record is published (M-29)."""

_STATUS: Final = "/status"
"""The address suffix under which a runtime publishes its status (REG-12)."""

_COMPONENT: Final = 3
"""Number of slashes in the address of a runtime; addresses of its components have more."""


class Ownership(Enum):
    """The right of a session to use an address as its own, for instance as a sender."""

    OWN = "own"
    BINDABLE = "without an owner, and not the node's to allocate"
    FOREIGN = "another session's"


class Hearing(Enum):
    """The right of a session to subscribe to an address and so receive its messages."""

    AT_ONCE = "no consent is needed"
    BY_CONSENT = "once its owner consents"
    IF_PUBLISHED = "while its owner subscribes to it, too, and so says that it publishes it"
    NEVER = "it is not made to be observed"


@final
class Observation(Enum):
    """The party that decides whether an object may be observed."""

    OWNER = "owner"
    OPEN = "open"


@final
class Names(Enum):
    """Rule for the names of runtimes of the original implementation, and of their components."""

    STRICT = "a runtime has a name of one segment, a component belongs to one session"
    LOOSE = "a runtime's name may have slashes, and sessions may share a free component"


@attrs.frozen
class RightsRules:
    """Settings of one node that affect the rights of its sessions.

    Attributes:
        observation: The party that decides whether an object may be observed.
        abroad: Other domains to whose nodes this node has a stub.
        names: Names that runtimes with the original implementation's wire format may use.
        has_login: Whether runtimes can log in.
    """

    observation: Observation = Observation.OWNER
    abroad: Container[str] = frozenset()
    names: Names = Names.STRICT
    has_login: bool = False


class NodeRights:
    """Decides which addresses a session at one domain's node may send from, own and observe.

    Attributes:
        names: Names that runtimes with the original implementation's wire format may use.

    Args:
        domain: The domain that the node serves.
        allocation: The owners of addresses.
        form_of: Returns the wire format of a runtime's session, connected or not; None: the runtime
            has no session.
        rules: The settings of the node.
        identity_of: Returns the login of a session at this node; None: no login.
        brought: Other domains whose nodes have had a session here.
    """

    def __init__(
        self,
        domain: str,
        allocation: AllocationCore,
        form_of: Callable[[str], PeerForm | None],
        rules: RightsRules,
        identity_of: Callable[[str], Identity | None] = lambda _: None,
        brought: Container[str] = frozenset(),
    ) -> None:
        self._domain = domain
        self._identity_of = identity_of
        self._has_login = rules.has_login
        self._brought = brought
        self._allocation = allocation
        self._form_of = form_of
        self._observation = rules.observation
        self._abroad = rules.abroad
        self.names: Final = rules.names

    def ownership(self, address: str, by: str) -> Ownership:
        """Return whether a session may use an address as its own (I-A3, I-B10).

        Args:
            address: The address.
            by: Address of the session's runtime or node.
        """
        if domain_of(address) != domain_of(by) or not self.may_speak(by):
            return Ownership.FOREIGN
        # The node of another domain represents all of it (S14).
        return Ownership.OWN if is_node(by) else self._of_runtime(address, by)

    def _of_runtime(self, address: str, by: str) -> Ownership:
        if is_below(address, by):
            is_certain = self.names is Names.STRICT or not self._is_upstream(by)
            is_its = is_certain or self.runtime_with(address) == by
            return Ownership.OWN if is_its else Ownership.FOREIGN
        owner = self._allocation.owner_of(address)
        if owner == by:
            return Ownership.OWN
        if owner is not None or is_backend(address):
            is_shared = self._is_shared(address, owner, by)
            return Ownership.OWN if is_shared else Ownership.FOREIGN
        if scheme_of(address) == RUNTIME_SCHEME:
            return self._of_component(address, by)
        return self._of_other(address, by)

    def _of_other(self, address: str, by: str) -> Ownership:
        """Return the right of another domain's runtime to use a free address of its domain (MN-13).

        If runtimes log in, the runtime needs a login in which its domain assigns the address to it.
        """
        if domain_of(address) == self._domain:
            return Ownership.FOREIGN
        is_its = not self._has_login or self._is_stated(address, by)
        return Ownership.BINDABLE if is_its else Ownership.FOREIGN

    def _is_stated(self, address: str, by: str) -> bool:
        """Return whether the login of a session assigns an address to it."""
        identity = self._identity_of(by)
        stated = frozenset[str]() if identity is None else identity.addresses
        return any(is_below(address, own) for own in stated)

    def may_speak(self, by: str) -> bool:
        """Return whether the node accepts messages of a session at all.

        A runtime of another domain is refused while that domain's node is connected here. If
        runtimes log in, the runtime also needs a login of an issuer that is responsible for that
        domain.

        Args:
            by: Address of the session's runtime or node.
        """
        domain = domain_of(by)
        if domain == self._domain or is_node(by):
            return True
        if self.is_routed(domain):
            return False
        identity = self._identity_of(by)
        is_stated = identity is not None and speaks_for(identity.issuer, domain)
        return is_stated or not self._has_login

    def is_routed(self, domain: str) -> bool:
        """Return whether the messages of another domain must come through that domain's node.

        Without logins no runtime can prove its domain. So after the node of a domain has had a
        session here, sessions of the domain's runtimes are never accepted again.

        Args:
            domain: The domain.
        """
        if domain in self._abroad or self._has_session(message_node(domain)):
            return True
        return not self._has_login and domain in self._brought

    def _has_session(self, runtime: str) -> bool:
        return self._form_of(runtime) is not None

    def runtime_with(self, address: str) -> str | None:
        """Return the runtime with a session to which an address belongs by its name, or None.

        With loose names several may match. Then a runtime with the current wire format has all
        addresses below its own; among the others, the longest matching name wins.
        """
        if scheme_of(address) != RUNTIME_SCHEME:
            return None
        runtime = runtime_of(address)
        if self.names is Names.STRICT or self._form_of(runtime) is PeerForm.OWN:
            return runtime if self._has_session(runtime) else None
        while not self._has_session(address) and address != runtime:
            address = address.rpartition("/")[0]
        return address if self._has_session(address) else None

    def may_be_called(self, runtime: str) -> bool:
        """Return whether a new runtime's address is allowed.

        The address must not be below that of a runtime with the current wire format.
        """
        top = runtime_of(runtime)
        return runtime == top or self._form_of(top) is not PeerForm.OWN

    def _is_shared(self, address: str, owner: str | None, by: str) -> bool:
        """Return whether two sessions may both send from the address of a component.

        Loose names allow this for sessions of the original implementation: the node sends each
        answer to the session that made the request.
        """
        return (
            self.names is Names.LOOSE
            and owner is not None
            and scheme_of(address) == RUNTIME_SCHEME
            and self.runtime_with(address) is None
            and self._is_upstream(owner)
            and self._is_upstream(by)
        )

    def _of_component(self, address: str, by: str) -> Ownership:
        """Return the right of a session to use a component's address that no session owns (C-43).

        Peers of the original implementation send from addresses such as `runtime://<d>/registry/1`,
        which belong to no runtime with a session.
        """
        is_free = (
            address.count("/") > _COMPONENT
            and domain_of(address) == self._domain
            and self.runtime_with(address) is None
            and self._is_upstream(by)
        )
        return Ownership.BINDABLE if is_free else Ownership.FOREIGN

    def bound_as(self, address: str) -> str:
        """Return the address that is assigned to a session when it uses a bindable one (MN-13).

        This is the object's or hyperty's own address if the given address is below it.
        """
        return address if scheme_of(address) == RUNTIME_SCHEME else entity_of(address)

    def owner_of(self, address: str) -> str | None:
        """Return the runtime that owns an address, if it has a session at this node, or None.

        If another domain's node is connected here, it counts as the owner of its domain.
        """
        domain = domain_of(address)
        if domain != self._domain and self.is_routed(domain):
            return self._peer_of(domain)
        return self.runtime_with(address) or self._allocation.owner_of(address)

    def _peer_of(self, domain: str) -> str | None:
        peer = message_node(domain)
        return peer if domain in self._abroad or self._has_session(peer) else None

    def hearing(self, resource: str, by: str) -> Hearing:
        """Return the right of a session to subscribe to an address.

        A session may receive messages to its own addresses. Of addresses of others, it may only
        subscribe to an object's changes, children and observers, to a record's status, and to the
        status that a runtime publishes (REG-12). The common address of all children of an object
        exists only for peers of the original implementation.

        Args:
            resource: The address.
            by: Address of the session's runtime or node.
        """
        if self.owner_of(resource) == by or is_below(resource, by):
            return Hearing.AT_ONCE
        entity = entity_of(resource)
        part = resource.removeprefix(entity)
        is_of_runtime = scheme_of(resource) == RUNTIME_SCHEME
        if is_of_runtime or is_backend(resource):
            is_status = is_of_runtime and part == _STATUS
            return Hearing.IF_PUBLISHED if is_status else Hearing.NEVER
        if part == _PUBLIC:
            return Hearing.AT_ONCE
        if is_all_children(resource):
            if not self._is_upstream(by):
                return Hearing.NEVER
        elif part not in _ASKED_FOR and not part.startswith(CHILDREN):
            return Hearing.NEVER
        return Hearing.AT_ONCE if self.is_open(entity) else Hearing.BY_CONSENT

    def is_open(self, entity: str) -> bool:
        """Return whether an object may be observed without its owner's consent."""
        if self._observation is Observation.OPEN:
            return True
        owner = self.owner_of(entity)
        return owner is not None and self._is_upstream(owner)

    def _is_upstream(self, runtime: str) -> bool:
        return self._form_of(runtime) is PeerForm.UPSTREAM

    def may_write_children(self, by: str) -> bool:
        """Return whether a session may send to the common address of an object's children (C-11).

        Only the original implementation has this address: otherwise each list of children has its
        own address.
        """
        return self._is_upstream(by)

    def may_register(self, resource: str, reporter: str, by: str) -> bool:
        """Return whether registering a data object also makes a session the address's owner (C-44).

        Runtimes of the original implementation choose the address themselves, and register the
        object before they subscribe to it.

        Args:
            resource: The address.
            reporter: The address of the hyperty that reports the object.
            by: Address of the session's runtime.
        """
        return (
            self._is_upstream(by)
            and scheme_of(resource) not in NO_OBJECT_SCHEMES
            and self.ownership(reporter, by) is Ownership.OWN
            and self.may_claim(resource, by)
        )

    def may_claim(self, resource: str, by: str) -> bool:
        """Return whether a session may become the owner of an address that it chose itself (C-44).

        The address must be free and belong to this domain, and so must the session's runtime (S14).

        Args:
            resource: The address.
            by: Address of the session's runtime or node.
        """
        return (
            domain_of(by) == self._domain
            and resource == entity_of(resource)
            and resource.count("/") > len("//")
            and domain_of(resource) == self._domain
            and scheme_of(resource) != RUNTIME_SCHEME
            and not is_backend(resource)
            and self._allocation.owner_of(resource) is None
        )
