"""A runtime that runs: what its owner can do with it, and how it comes and goes."""

from functools import partial
from typing import final

import trio

from actors.kit.actor import ActorRef
from actors.kit.supervisor import Intensity
from actors.runtime.allocation import AddressesForgotten, AddressGiven
from actors.runtime.bus_messages import Granted, Origin
from actors.runtime.catalogue import handler_descriptor, requester_descriptor
from actors.runtime.entering import Entrance
from actors.runtime.hyperty import HypertyHost, HypertyMaker
from actors.runtime.hyperty_addresses import HypertyAddresses
from actors.runtime.leaving import in_turn
from actors.runtime.loader import Hosted, Load, Unload
from actors.runtime.parts import RuntimeParts
from actors.runtime.ports import CorePort
from actors.runtime.profile import Profile
from actors.runtime.registrar import RegisterWanted, ReplayWanted, UnregisterWanted
from actors.runtime.registry import LinksClosed, LinksWanted, RegistryView
from actors.runtime.sandbox import SandboxMessage
from actors.runtime.sandboxes import Component, ComponentMaker
from actors.runtime.stub import StubConfig
from actors.runtime.sync_terms import ComponentLeft, ObjectsClosed, PathsForgotten
from fsm.cores.link_entry import LinkEntry, Role
from fsm.cores.resolve_inputs import HandlerReady, LocalAdded
from specs.address import subscription_manager
from specs.body import Command, Path, Record
from specs.jsonvalue import JsonObject
from specs.limits import GOODBYE_TIMEOUT
from specs.message import Message, MessageType
from specs.reply_code import LAST_SUCCESS
from transports.bodies import write_body

__all__ = ["Runtime"]


@final
class Runtime:
    """A runtime; made by `open_runtime`.

    Attributes:
        url: Its address.
        counters: What was dropped, and why; and what the monitor saw.
    """

    def __init__(self, parts: RuntimeParts) -> None:
        self.url = parts.config.runtime
        self.counters = parts.counters
        self._parts = parts
        self._entrance = Entrance(parts.agent, parts.config.domain)
        self._handler: str | None = None
        self._addresses = HypertyAddresses(parts.allocation)
        self._hyperties: dict[str, Profile] = {}
        self._stopped: dict[str, trio.Event] = {}
        self._leaving: tuple[str, ...] = ()

    @property
    def monitor_violations(self) -> int:
        """How many steps were tried that no table declares; each is in log and trace."""
        return self.counters.monitor_violations

    # ---- for its owner

    async def deploy(self, profile: str | Profile, make: HypertyMaker) -> str:
        """Run a hyperty and register it; return its address (HYP-01).

        Args:
            profile: What is registered of it; a text is its name, need not be unique.
            make: Makes the hyperty, anew after each crash; a class will do.

        Otherwise as `host`.
        """
        ids = self._parts.config.ids
        return await self.host(profile, lambda port: HypertyHost(make, port, ids))

    async def host(self, profile: str | Profile, make: ComponentMaker) -> str:
        """Run an actor as a hyperty: it takes messages, and answers requests, itself.

        If anything fails, or this is cancelled, nothing of it is left.

        Raises:
            AllocationError: The node gave no address; `code` 503 if it is out of reach.
            NotKeptError: The profile names an address that is not kept for it.
            RegistrationError: The domain registry did not take the record.
        """
        told = Profile(profile) if isinstance(profile, str) else profile
        url = (await self.reserve(told)).address
        is_up = False
        try:
            sandbox = await self._run(url, make)
            await self._register(url, told)
            self._hyperties[url], self._stopped[url] = told, trio.Event()
            await self._parts.loader.tell(Hosted(url, sandbox, self._ended))
            is_up = True
        finally:
            if not is_up:
                self._hyperties.pop(url, None)
                with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                    await self._remove(url)
        return url

    async def undeploy(self, url: str) -> None:
        """Unregister a hyperty, stop it, and give its address back; repeated is fine.

        The objects it reports are deleted, those it observes are left; who does not
        answer in time is not waited for.

        One that crashes too often is undeployed by the runtime itself.
        """
        if self._hyperties.pop(url, None) is not None:
            await self._remove(url)

    async def rest(self, url: str) -> None:
        """Take a hyperty down, but keep its address: the next of its descriptor has it again."""
        profile = self._hyperties.pop(url, None)
        if profile is not None:
            stopped = self._stopped[url]
            await self._take_down(url)
            await stopped.wait()
            await self._addresses.keep(url, profile)

    async def reserve(self, profile: Profile) -> AddressGiven:
        """Get an address for a hyperty, as `host` does, without running one."""
        return await self._addresses.give(profile)

    async def _ended(self, url: str) -> None:
        """Take leave of a hyperty whose sandbox is gone, asked for or not."""
        self._stopped.pop(url).set()
        await self.undeploy(url)

    async def _remove(self, url: str) -> None:
        await self._take_down(url)
        await self._addresses.free((url,))

    async def _take_down(self, url: str) -> None:
        await self._unregister(url)
        with trio.move_on_after(GOODBYE_TIMEOUT):
            await self._parts.sync_manager.ask(lambda done: ComponentLeft(url, done))

    async def enter(self) -> None:
        """Have the session with the own node opened; for whoever does nothing else at once.

        Raises:
            SessionError: The node refuses it, or is out of reach; `code` says which.
        """
        await self._entrance.enter(self._parts.config.ids.next(self._parts.agent.url))

    async def order(self, part: str, kind: MessageType, to: str, body: JsonObject) -> Message:
        """Have a part of the runtime, such as `registry`, send a request; return its answer.

        For whoever tries a node; a part that is not there is answered 401.
        """
        sender = f"{self.url}/{part}"
        number = self._parts.config.ids.next(sender)
        port = CorePort(sender, self._parts.bus)
        return await port.request(Message(number, kind, sender, to, body))

    async def lend(self, part: str) -> None:
        """Let something beside the runtime speak as a part of it; it is checked like any part."""
        sender = f"{self.url}/{part}"
        await self._parts.bus.ask(partial(Granted, sender, sender, Origin.LOCAL))

    async def links(self) -> tuple[LinkEntry, ...]:
        """Show the P2P links, one per remote runtime (P2P-18)."""
        return (await self._view()).links

    async def node_stubs(self) -> tuple[str, ...]:
        """Show the stubs to message nodes that are deployed."""
        return (await self._view()).node_stubs

    @property
    def handler(self) -> str | None:
        """The handler stub that takes P2P links; None: this runtime takes none."""
        return self._handler

    async def _view(self) -> RegistryView:
        return await self._parts.registry.ask(LinksWanted)

    # ---- hyperties

    async def _run(self, url: str, make: ComponentMaker) -> ActorRef[SandboxMessage]:
        await self._parts.registry.tell(LocalAdded(url))
        component = Component(url, Origin.LOCAL, make, Intensity())
        return await self._parts.sandboxes.open(component)

    async def _register(self, url: str, profile: Profile) -> None:
        config = self._parts.config
        takes_links = self._handler is not None
        record = Record(
            url,
            self.url,
            user=config.user,
            name=profile.name,
            descriptor=profile.descriptor,
            resources=profile.resources,
            data_schemes=profile.data_schemes,
            p2p_handler=self._handler,
            p2p_requester=requester_descriptor(config.domain) if takes_links else None,
        )
        await self._parts.registrar.ask(lambda reply: RegisterWanted(record, reply))

    # ---- coming

    async def boot(self) -> None:
        """Deploy the handler stub and set its path, if P2P is wanted (P2P-01, P2P-02)."""
        config = self._parts.config
        if not config.kinds:
            return
        url = f"{self.url}/p2phandler/1"
        stub = StubConfig(self.url, config.domain, kinds=config.kinds, host=config.p2p_host)
        descriptor = handler_descriptor(config.domain)
        refusal: str | None = await self._parts.loader.ask(
            lambda done: Load(url, descriptor, stub, done)
        )
        if refusal is None and await self._set_path(url, MessageType.SUBSCRIBE):
            self._handler = url
            await self._parts.registry.tell(HandlerReady(url))

    async def paths_lost(self, domain: str) -> None:
        """Set paths and registrations again that a node has forgotten (STB-09)."""
        await self._parts.sync_manager.tell(PathsForgotten(domain))
        if domain != self._parts.config.domain:
            return
        await self._parts.allocation.tell(AddressesForgotten())
        await self._parts.registrar.tell(ReplayWanted())
        if self._handler is not None:
            await self._set_path(self._handler, MessageType.SUBSCRIBE)

    async def _set_path(self, url: str, kind: MessageType) -> bool:
        """Set or remove the path of a P2P stub at the own node (M-01, M-02, M-04)."""
        to = subscription_manager(self._parts.config.domain)
        answer = await self._ask(kind, to, Path((url,), url))
        return answer.code <= LAST_SUCCESS

    async def _ask(self, kind: MessageType, to: str, body: Path | Command) -> Message:
        sender = self._parts.agent.url
        number = self._parts.config.ids.next(sender)
        request = Message(number, kind, sender, to, write_body(body))
        answer = await self._parts.agent.request(request)
        self._entrance.heard(answer)
        return answer

    # ---- going

    async def leave(self) -> None:
        """Take leave; each step has its time (P2P-28).

        Registrations, P2P links, data objects, paths, addresses, sessions, in this order.
        """
        first = (self._unregister_all, self._end_links_and_objects)
        await in_turn(*first, self._free_all, self._end_sessions)

    async def _unregister_all(self) -> None:
        self._leaving = tuple(self._hyperties)
        self._hyperties.clear()
        async with trio.open_nursery() as nursery:
            for url in self._leaving:
                nursery.start_soon(self._unregister, url)

    async def _unregister(self, url: str) -> None:
        await self._parts.registrar.ask(lambda reply: UnregisterWanted(url, reply))
        await self._parts.sandboxes.close(url)

    async def _end_links_and_objects(self) -> None:
        await self._end_links()
        # The objects of links are among them: what is under way is waited for.
        await self._parts.sync_manager.ask(ObjectsClosed)

    async def _end_links(self) -> None:
        links = await self._parts.registry.ask(LinksClosed)
        async with trio.open_nursery() as nursery:
            for entry in links:
                nursery.start_soon(self._end_link, entry)
        if self._handler is not None:
            await self._set_path(self._handler, MessageType.UNSUBSCRIBE)
            await self._unload(self._handler, None)

    async def _end_link(self, entry: LinkEntry) -> None:
        if entry.role is Role.REQUESTER:
            await self._unload(entry.stub, entry.remote)
            await self._set_path(entry.stub, MessageType.UNSUBSCRIBE)
        else:
            command = Command("disconnect", (entry.remote,))
            await self._ask(MessageType.EXECUTE, entry.stub, command)

    async def _free_all(self) -> None:
        await self._addresses.free(self._leaving)

    async def _end_sessions(self) -> None:
        async with trio.open_nursery() as nursery:
            for stub in await self.node_stubs():
                nursery.start_soon(self._unload, stub, None)

    async def _unload(self, url: str, remote: str | None) -> None:
        await self._parts.loader.ask(lambda done: Unload(url, remote, done))
