"""A hyperty runtime inside a program."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar, final, overload

import attrs

from actors.embedding.deployed import Deployed, DeployedApart
from actors.embedding.surroundings import (
    Trace,
    bare_error,
    check_dialled,
    open_network,
    open_tracer,
)
from actors.kit.counting.drops import DropLedger
from actors.kit.time_of_day import clock_offset, fresh_ids
from actors.pipe.process import process_rooms
from actors.pipe.spawn import Spawn
from actors.runtime import app
from actors.runtime.config import RuntimeConfig
from actors.runtime.following import Following
from actors.runtime.hyperty.hyperty import Hyperty, HypertyMaker, Profile
from actors.runtime.isolation.hyperty import HypertyCode
from actors.runtime.runtime import Runtime as RunningRuntime
from fsm.registry.resolve.link_entry import LinkEntry
from specs.addresses.address import domain_name, runtime_name
from transports.network import Network

__all__ = ["Runtime", "open_runtime"]

M = TypeVar("M")

_UNNAMED: Final = "hyperty"


@final
class Runtime:
    """A runtime that runs; made by `open_runtime`.

    Attributes:
        url: Its address.
    """

    def __init__(self, running: RunningRuntime) -> None:
        self.url: Final = running.url
        self._running: Final = running

    async def deploy(self, make: HypertyMaker, profile: str | Profile | None = None) -> Deployed:
        """Run a hyperty and register it in the domain; return a handle to act in its name.

        Args:
            make: Makes the hyperty, anew after each crash: its class, or what calls it.
            profile: What is registered of it; a text is its name, which need not be
                unique. By default it is named after its class.

        Cancelled: nothing of it is left.

        Raises:
            TypeError: What is given makes no hyperty.
            AllocationError: The node gave no address; `code` 503 if it is out of reach.
            NotKeptError: The profile names an address that is not kept for it.
            RegistrationError: The domain registry did not take the record.
        """
        if not callable(make):
            raise TypeError(f"deploy takes what makes a hyperty, such as its class, not {make!r}")
        if profile is None:
            profile = make.__name__ if isinstance(make, type) else _UNNAMED
        seat, life = await self._running.settle(profile, make)
        return Deployed(self._running, seat, life)

    async def deploy_apart(
        self, made: type[Hyperty], profile: str | Profile | None = None
    ) -> DeployedApart:
        """Run a hyperty in a sandbox process of its own, and register it.

        Whatever it does, computes or breaks there goes no further: it has no network, no
        environment, and no files but what this program can import. A crash ends its
        process, and another takes its place.

        Args:
            made: Its class, at the top level of a module; made without arguments there.
            profile: As of `deploy`.

        Cancelled: nothing of it is left.

        Raises:
            NoCodeError: Another process cannot import the class.
            RoomError: No process could be started, or the hyperty not in it.

        Otherwise as `deploy`.
        """
        told, code = made.__name__ if profile is None else profile, HypertyCode.of(made)
        return DeployedApart(self._running, await self._running.settle_apart(told, code, _rooms()))

    async def enter(self) -> None:
        """Log in at the node now; else it is done when first needed.

        Raises:
            SessionError: The node refuses it, or is out of reach; `code` says which.
        """
        await self._running.enter()

    async def links(self) -> tuple[LinkEntry, ...]:
        """Show the direct links, one per remote runtime."""
        return await self._running.links()

    async def follow(
        self, machine: str, make: Callable[[str], M], about: str | None = None
    ) -> Following[M]:
        """Let models of the application live along with links, stubs or objects of the runtime.

        A model is any object whose attribute `state` can be set. It is made at the first
        step that is seen of its entity, begins in the state that this step leaves, and then
        has each state of the entity. Entering one calls the model's `on_enter_<state>`,
        leaving one its `on_exit_<state>`, if it has them, with `_` for each hyphen of the
        state, and with an `EventData` of `transitions`, whose `kwargs["step"]` is the step
        with its `cause`, and perhaps a `why`.

        The models are called soon after the step, by a task of their own that the runtime
        supervises: it does not wait for them, and what they raise is logged and counted.

        Args:
            machine: Whose entities: `p2p_connection` for direct links, `stub_connection` for
                stubs, `observer_copy` and `object_subscription` for data objects; all that
                `python -m fsm list` names, but `transaction`.
            make: Makes the model of an entity, given its key.
            about: Follows the entities only whose key has this address in it, such as the
                remote runtime of a link, or an object; None: all.

        Raises:
            UnknownMachineError: There is no such machine; the error tells the nearest name.
            ValueError: It is `transaction`, which steps too often to be followed.
        """
        return await self._running.follow(machine, make, about)

    def drops(self) -> DropLedger:
        """Show which messages were not delivered, and why: counted, and the last one by one."""
        return self._running.drops()

    @property
    def monitor_violations(self) -> int:
        """How many steps were tried that no state machine declares; each is logged."""
        return self._running.monitor_violations


@overload
def open_runtime(
    domain: RuntimeConfig, *, network: Network | None = None, trace: Trace = None
) -> AbstractAsyncContextManager[Runtime]: ...


@overload
def open_runtime(
    domain: str,
    name: str,
    *,
    node: str,
    network: Network | None = None,
    trace: Trace = None,
    store: str | Path | None = None,
) -> AbstractAsyncContextManager[Runtime]: ...


def open_runtime(  # noqa: PLR0913 - all but the first two are named, and have a default
    domain: str | RuntimeConfig,
    name: str = "",
    *,
    node: str = "",
    network: Network | None = None,
    trace: Trace = None,
    store: str | Path | None = None,
) -> AbstractAsyncContextManager[Runtime]:
    """Run a hyperty runtime while the context is open; on leaving it takes leave of all.

    Without direct links nothing is connected before it is needed. With them the handler
    stub is set up before the block begins; if that fails the runtime goes on without.

    Args:
        domain: Its domain; or a whole configuration, which says how to log in, what
            direct links may use, who may send what, and where other domains' nodes are.
        name: Its name there, the same after a restart.
        node: Where the node of the domain is dialled: `Node.url`.
        network: Where it dials and listens; the operating system's network by default,
            where message ids, and what expires, go by the time of day, whatever is
            configured.
        trace: Where its evidence goes.
        store: A SQLite file for data objects that outlive the process, made if it is not
            there; see `Voice.report`. A whole configuration names its own.

    An error of the block comes out as itself, several at once as a group.

    Cancelled: it takes leave in order, for some seconds at most.

    Raises:
        BadUrlError: Domain or name cannot be part of an address, or the node of the domain
            cannot be dialled at what was given.
        StoreFileError: The file to store objects in cannot be used.
        TraceDirectoryError: The trace directory cannot be made or written.
        RestartLimitError: A core part crashed: a bug.
        HypertyFailedError: A hyperty was given up, and the configuration says
            `stop_on_failure`.
    """
    if isinstance(domain, str):
        place = None if store is None else Path(store)
        domain = RuntimeConfig(domain=domain, name=name, node=node, store=place)
    return _open(domain, network, trace)


@asynccontextmanager
async def _open(
    config: RuntimeConfig, network: Network | None, trace: Trace
) -> AsyncIterator[Runtime]:
    domain_name(config.domain)
    runtime_name(config.name)
    if network is None:
        check_dialled(config.node)
        config = _by_the_clock(config)
    with bare_error():
        async with _running(config, network, trace) as running:
            yield Runtime(running)


@asynccontextmanager
async def _running(
    config: RuntimeConfig, network: Network | None, trace: Trace
) -> AsyncIterator[RunningRuntime]:
    async with (
        open_tracer(trace, config.name) as tracer,
        open_network(network) as carrier,
        app.open_runtime(config, carrier, tracer) as running,
    ):
        yield running


def _rooms() -> Spawn:
    """Return what makes sandbox processes that import what this one can."""
    return process_rooms(str(Path(one).resolve()) for one in sys.path)


def _by_the_clock(config: RuntimeConfig) -> RuntimeConfig:
    """Let ids and what expires go by the time of day."""
    access = config.catalogues
    if access is not None:
        access = attrs.evolve(access, clock_offset=clock_offset())
    return attrs.evolve(config, ids=fresh_ids(), catalogues=access)
