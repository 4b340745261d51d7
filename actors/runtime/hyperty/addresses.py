"""Allocation and release of the addresses of a runtime's hyperties."""

from collections import deque
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

import trio

from actors.runtime.bus.ports import CorePort
from actors.runtime.config import RuntimeConfig
from actors.runtime.discovery.search import Discoverer, RecordSearch, SearchError
from actors.runtime.hyperty.hyperty import Profile
from actors.runtime.registry.allocation import AddressAllocation, AddressGiven, AllocationError
from actors.runtime.store.runtime_store import RuntimeStore
from fsm.registry.allocation import Purpose
from fsm.registry.records import By
from fsm.sync.stored import HomeKept
from specs.addresses.address import subscription_manager
from specs.bodies.link import Path
from specs.bodies.registry import ReadRecord
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS, Code
from transports.bodies import write_body

_HYPERTY: Final = "hyperty"

_NAMED: Final = "name:"
"""Prefix before the name of a hyperty, as the purpose of its address without a descriptor."""

_NEVER: Final = frozenset({Code.MALFORMED, Code.FORBIDDEN})
"""Codes by which a registry refuses to list the registrations of a runtime for good."""

_AWAY: Final = frozenset({Code.UNAUTHENTICATED, Code.TIMEOUT, Code.UNAVAILABLE})
"""Codes that the own runtime answers if the node cannot be reached."""


class HypertyAddresses:
    """Gets the addresses of hyperties from the address allocation of the runtime, and keeps them.

    After a restart of the runtime, a hyperty gets its address again by its descriptor, or, without
    one, by its name: with a store if it has stored data, and else as long as the domain registry
    has the record that the runtime and its user registered (ALC-02).
    """

    def __init__(
        self,
        config: RuntimeConfig,
        agent: CorePort,
        allocation: AddressAllocation,
        store: RuntimeStore,
        discoverer: Discoverer,
        user: Callable[[], str | None],
    ) -> None:
        self._config = config
        self._agent = agent
        self._allocation = allocation
        self._store = store
        self._discoverer = discoverer
        self._user = user
        self._former: dict[Purpose, deque[str]] | None = None
        self._former_lock = trio.Lock()

    # --- stored ---------------------------------------------------------------------------

    async def boot(self) -> None:
        """Claim again the addresses of hyperties that have stored data; forget the others.

        If cancelled, some of them may be claimed; the others are claimed by the next boot.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        for home in self._store.rest.rows(HomeKept):
            if self._store.descriptor_of(home.url) is None:
                await self._store.forget_home(home.url)
        await self.claim(frozenset())

    async def claim(self, present: AbstractSet[str]) -> None:
        """Claim the stored addresses at the node, except those in use, which are claimed elsewhere.

        If cancelled, some of them may be claimed.

        Args:
            present: Addresses in use.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        for home in self._store.rest.rows(HomeKept):
            if home.url not in present and self._store.descriptor_of(home.url) is not None:
                await self._claim(home.url, home.descriptor)

    async def _claim(self, url: str, descriptor: str) -> bool:
        config, agent = self._config, self._agent
        body = write_body(Path((url,), config.runtime))
        number, to = config.ids.next(agent.url), subscription_manager(config.domain)
        request = Message(number, MessageType.SUBSCRIBE, agent.url, to, body)
        answer = await agent.request(request)
        is_claimed = answer.code <= LAST_SUCCESS
        if is_claimed:
            self._allocation.keep(url, Purpose(_HYPERTY, descriptor))
        return is_claimed

    # --- registered -----------------------------------------------------------------------

    async def _claim_former(self, purpose: Purpose) -> None:
        """Claim an address that a hyperty of this purpose had before the runtime was restarted.

        The registry is asked once: later, this process knows all that the registry knows.
        """
        async with self._former_lock:
            if self._former is None:
                self._former = await self._find_registered()
        former = {} if self._former is None else self._former
        while former.get(purpose):
            if await self._claim(former[purpose].popleft(), purpose.descriptor or ""):
                return

    async def _find_registered(self) -> dict[Purpose, deque[str]] | None:
        """Return the addresses that this runtime has registered before; None: not known now.

        Raises:
            AllocationError: The node cannot be reached, so that it could not allocate either.
        """
        runtime, registered = self._config.runtime, dict[Purpose, deque[str]]()
        read = ReadRecord(f"/{_HYPERTY}/{By.RUNTIME.value}/{runtime}")
        try:
            entries = await RecordSearch(self._discoverer.reader(None), read)
        except SearchError as error:
            if error.code in _AWAY:
                raise AllocationError(error.code, error.reason) from error
            return registered if error.code in _NEVER else None
        for entry in entries:
            key = entry.descriptor or (entry.name and f"{_NAMED}{entry.name}")
            if key and (entry.runtime, entry.user) == (runtime, self._user()):
                registered.setdefault(Purpose(_HYPERTY, key), deque()).append(entry.url)
        return registered

    # --- allocation and release -------------------------------------------------------------

    async def allocate(self, profile: Profile) -> AddressGiven:
        """Return an address for a hyperty: one that such a hyperty had before, else a new one.

        If cancelled, an address that the node allocates all the same is given back to it.

        Raises:
            AllocationError: The node allocated no address.
            BadMessageError: The answer of the node is malformed.
            NotKeptError: The profile names an address that is not kept for such a hyperty.
            ActorStoppedError: The runtime has closed.
        """
        purpose, wanted = _purpose(profile), profile.address
        if wanted is None:
            await self._claim_former(purpose)
        allocated = await self._allocation.address_for(purpose, wanted)
        with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
            # Shielded: from here on, the caller gets the address and can give it back.
            await self._store.keep_home(allocated.address, purpose.descriptor)
        return allocated

    def keep(self, url: str, profile: Profile) -> None:
        """Keep an address that no hyperty uses now for the next one with the same profile.

        Args:
            url: The address.
            profile: The profile of the hyperty that had it.
        """
        self._allocation.keep(url, _purpose(profile))

    async def free(self, urls: tuple[str, ...]) -> None:
        """Give addresses back to the node. Idempotent.

        Addresses of hyperties that have stored data are kept. If cancelled, some may not be given
        back; the node frees them when the session of the runtime ends.
        """
        freed = [url for url in urls if not await self._is_kept(url)]
        if not freed:
            return
        try:
            await self._allocation.free(tuple(freed))
        except AllocationError:
            # The node frees the addresses at the end of the session (I-A7).
            return

    async def _is_kept(self, url: str) -> bool:
        descriptor = self._store.descriptor_of(url)
        if descriptor is None:
            await self._store.forget_home(url)
            return False
        self._allocation.keep(url, Purpose(_HYPERTY, descriptor))
        return True


def _purpose(profile: Profile) -> Purpose:
    return Purpose(_HYPERTY, profile.descriptor or f"{_NAMED}{profile.name}")
