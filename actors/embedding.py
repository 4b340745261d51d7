"""A runtime inside a program.

Nodes have a module of their own, so that a program without a node does not load them.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import NoneType
from typing import Final, TypeVar, Unpack, final, overload

import attrs
from typing_extensions import override

from actors.deployed import Deployed, DeployedApart
from actors.kit.arguments import PathInput, as_path_or_none, check_text, check_type
from actors.kit.counters import DropLedger
from actors.kit.http_client import check_plain
from actors.kit.ids import clock_offset, fresh_ids
from actors.resources import (
    Trace,
    bare_error,
    check_dialled,
    check_resources,
    check_trio,
    open_network,
    open_tracer,
)
from actors.runtime import app as runtime_app
from actors.runtime.config import RuntimeConfig
from actors.runtime.discovery.search import RecordSearch, Watching
from actors.runtime.following import Following
from actors.runtime.hyperty.hyperty import Hyperty, HypertyMaker, Profile, recorded_schema
from actors.runtime.isolation import HypertyCode
from actors.runtime.runtime import Runtime as RunningRuntime
from actors.runtime.stubs.credentials import NO_CREDENTIALS, Credentials
from fsm.bus.listeners import ForwardRule
from fsm.registry.discovery import Criteria
from fsm.registry.resolve.links import LinkEntry
from specs.addresses.address import domain_name, runtime_name
from specs.bodies.word import StatusValue
from specs.jsonvalue import Json
from transports.link import Network

__all__ = ["Runtime", "open_runtime"]


M = TypeVar("M")

_UNNAMED: Final = "hyperty"


@final
class Runtime:
    """A running hyperty runtime; made by `open_runtime`.

    Attributes:
        url: Its address, such as `hyperty-runtime://a.example/ra`.
        http_url: URL of health and metrics; None: no HTTP.
    """

    def __init__(self, running: RunningRuntime) -> None:
        self.url: Final = running.url
        self.http_url: Final = running.http_url
        self._running: Final = running

    @override
    def __repr__(self) -> str:
        return f"<Runtime {self.url} {'closed' if self._running.is_leaving else 'open'}>"

    async def deploy(
        self,
        make: HypertyMaker,
        name: str | None = None,
        *,
        resources: Sequence[str] = (),
        schemas: Sequence[str] = (),
        descriptor: str | None = None,
    ) -> Deployed:
        """Run a hyperty, register the hyperty in the domain, and return a handle to it.

        A hyperty of the same name, of the same runtime and user, has its address again after a
        restart of the runtime, while the domain registry keeps the earlier record.

        Args:
            make: Makes the hyperty, and again after each crash: its class, or another callable
                without arguments.
            name: Its name in the domain registry, which need not be unique; None: the name of its
                class.
            resources: Resources that it offers, such as `chat`; others search by them.
            schemas: Schemes or data schemas of the data objects that it uses, such as `comm`;
                others search by them.
            descriptor: Catalogue address of its descriptor; None: it has none.

        Returns:
            The handle, which is also an async context manager that undeploys the hyperty.

        If cancelled, the runtime removes the hyperty; the call waits for that, for at most
        `GOODBYE_TIMEOUT` seconds. Its address is free again, also if the node allocates it later.

        Raises:
            TypeError: `make` is not callable, or another argument is of a wrong kind.
            ValueError: The name is empty.
            AllocationError: The node gave no address; `code` 503 if it cannot be reached.
            BadMessageError: The node answered the allocation with something else.
            RegistrationError: The domain registry did not take the record.
            ActorStoppedError: The runtime has closed.
            Exception: What `make` or `Hyperty.started` raised; the hyperty was removed again.
        """
        if not callable(make):
            raise TypeError(f"deploy takes what makes a hyperty, such as its class, not {make!r}")
        if name is None:
            name = make.__name__ if isinstance(make, type) else _UNNAMED
        profile = Profile(name, descriptor, resources, schemas)
        participant, life = await self._running.run_hyperty(profile, make)
        return Deployed(self._running, participant, life)

    async def deploy_apart(
        self,
        made: type[Hyperty],
        name: str | None = None,
        *,
        resources: Sequence[str] = (),
        schemas: Sequence[str] = (),
        descriptor: str | None = None,
    ) -> DeployedApart:
        """Run a hyperty in a sandbox process of its own, and register it in the domain.

        The sandbox has no network, no environment variables, and no files except those of
        Python's standard library and of the installed distributions that the module imports by
        `import` statements; of other modules it gets the sources. A crash of the hyperty ends
        its process, and the runtime starts another one.

        Args:
            made: Class of the hyperty, at the top level of a module; the sandbox calls it
                without arguments.
            name: As for `deploy`; the other arguments, too.
            resources: Resources that it offers.
            schemas: Schemes or data schemas of the data objects that it uses.
            descriptor: Catalogue address of its descriptor.

        Returns:
            The handle, which is also an async context manager that undeploys the hyperty.

        If cancelled, the hyperty is unregistered and its process ended, as by `deploy`.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: The name is empty.
            NoCodeError: Another process cannot import the class.
            SandboxError: No sandbox process started, or the hyperty did not start in it.
            AllocationError: The node gave no address; `code` 503 if it cannot be reached.
            BadMessageError: The node answered the allocation with something else.
            RegistrationError: The domain registry did not take the record.
            ActorStoppedError: The runtime has closed.
        """
        given: object = made
        if not (isinstance(given, type) and issubclass(given, Hyperty)):
            raise TypeError(f"deploy_apart takes a class of hyperties, not {made!r}")
        code = HypertyCode.of(made)
        name, schema = made.__name__ if name is None else name, recorded_schema(made)
        profile = Profile(name, descriptor, resources, schemas, message_schema=schema)
        return DeployedApart(self._running, await self._running.run_in_sandbox(profile, code))

    async def load(self, address: str, name: str | None = None) -> DeployedApart:
        """Run the hyperty that a signed descriptor of a catalogue describes.

        It is verified by the trust of `RuntimeConfig.catalogues`, and runs as by `deploy_apart`.

        Args:
            address: Catalogue address, such as
                `hyperty-catalogue://catalogue.b.example/.well-known/hyperty/greeter`.
            name: Name of the hyperty in the domain registry; None: that of the descriptor.

        Returns:
            The handle, which is also an async context manager that undeploys the hyperty.

        If cancelled, the hyperty is unregistered and its process ended, as by `deploy`.

        Raises:
            TypeError: An argument is of a wrong kind.
            HypertyLoadError: The hyperty was not deployed; see the `step` of the error.
            ActorStoppedError: The runtime has closed.
        """
        check_type(address, (str,), "address")
        check_type(name, (str, NoneType), "name")
        return DeployedApart(self._running, await self._running.load(address, name))

    async def enter(self) -> None:
        """Log in at the node of the domain now; without this call the first message does it.

        If cancelled, the session may still be opened; what the node answers is dropped.

        Raises:
            SessionError: The node refuses the session, or cannot be reached; see its `code`.
            ActorStoppedError: The runtime has closed.
        """
        await self._running.enter()

    async def release_name(self, name: str | None = None) -> None:
        """Give the name of a runtime back to the node.

        Where users log in, a name belongs to the user who opens it first. After its release any
        user can open it, as soon as no runtime has it any more.

        Args:
            name: A name of the same user in this domain; None: the name of this runtime, which
                is free when it has closed.

        If cancelled, the name may be given back.

        Raises:
            BadUrlError: The text cannot be the name of a runtime.
            ReleaseError: The node refuses, or cannot be reached; see its `code`.
            ActorStoppedError: The runtime has closed.
        """
        check_type(name, (str, NoneType), "name")
        await self._running.release_name(name)

    def discover(
        self, *, domain: str | None = None, limit: int | None = None, **criteria: Unpack[Criteria]
    ) -> RecordSearch:
        """Search a domain registry in the name of the runtime, as a hyperty does in its own.

        Args:
            domain: Domain whose registry is searched; None: the own one.
            limit: Maximal number of entries of a page; None: the registry decides.
            criteria: Criteria that each entry meets, as for `discover` of a hyperty.

        Returns:
            The search: `await` returns the first 1024 entries, `async for` reads page after page.

        Raises:
            TypeError: A criterion is of a wrong kind, or unknown, or none is given.
            ValueError: A criterion is empty.
            BadUrlError: User, reporter or domain is no address.
            BadMessageError: The limit is not in 1..256.
        """
        return self._running.discoverer.discover(domain=domain, limit=limit, **criteria)

    async def read_record(self, url: str, attribute: str | None = None) -> Json:
        """Read the record of a hyperty or data object in its domain's registry.

        Args:
            url: Address of the hyperty or object.
            attribute: Dotted path in the record, such as `status`; None: the whole record.

        If cancelled, nothing has changed.

        Raises:
            TypeError: An argument is of a wrong kind.
            ValueError: The attribute is empty.
            BadUrlError: `url` is no address.
            SearchError: As of `read_record` of a hyperty.
            ActorStoppedError: The runtime has closed.
        """
        check_text(url, "url")
        return await self._running.discoverer.record(url, attribute)

    def watch(self, *, domain: str | None = None, **criteria: Unpack[Criteria]) -> Watching:
        """Follow the results of a search: entries that appear, change, or vanish.

        Args:
            domain: Domain whose registry is searched; None: the own one.
            criteria: Criteria that each entry meets, as for `discover` of a hyperty.

        Returns:
            The changes, as of `watch` of a hyperty.

        Raises:
            TypeError: A criterion is of a wrong kind, or unknown, or none is given.
            ValueError: A criterion is empty.
            BadUrlError: User, reporter or domain is no address.
        """
        return self._running.discoverer.watch(domain=domain, **criteria)

    @property
    def status(self) -> StatusValue:
        """Status of the runtime: `created`, then `live` while it reaches its node, else not.

        `failed`: the node has ended the session for good; `end_reason` says why.
        """
        return self._running.status.value

    @property
    def end_reason(self) -> str | None:
        """Why the node has ended the session for good; None: it has not.

        Such as `taken over by another login`. The runtime does not log in again by itself: it
        refuses all messages to its domain with this reason, and `enter` raises it.
        """
        return self._running.status.end

    def status_changes(self) -> AsyncIterator[StatusValue]:
        """Return an iterator over the present status and each newer one.

        A reader that is slower than the changes gets the newest. If cancelled while it waits,
        nothing has changed.
        """
        return self._running.status.changes()

    def forward(self, source: str, target: str) -> AbstractAsyncContextManager[None]:
        """Copy messages for an address of this runtime to another one, while the context is open.

        The target gets each request and event with its own address in `to`, and the source in
        `via`. The sender gets the answer of the source only.

        Args:
            source: Address whose messages are copied, such as `url` of a deployed hyperty.
            target: Address that gets the copies.

        If cancelled on entering, the rule may hold until the runtime closes.

        Raises:
            ForwardRefusedError: On entering: an address is of another runtime, or there would be a
                routing loop.
            BadUrlError: An argument is no address.
            ActorStoppedError: On entering: the runtime has closed.
        """
        return self._running.agent.forwarding(ForwardRule.of(source, target))

    def bind(self, one: str, other: str) -> AbstractAsyncContextManager[None]:
        """Copy messages for each of two addresses of this runtime to the other one.

        Args:
            one: The first address.
            other: The second address.

        If cancelled on entering, the alias may hold until the runtime closes.

        Raises:
            ForwardRefusedError: As for `forward`; the other errors, too.
        """
        return self._running.agent.forwarding(ForwardRule.of(one, other, is_alias=True))

    async def reload_policies(self) -> str:
        """Read the policy files again; the runtime keeps its policies if one cannot be used.

        If cancelled, the files may be read all the same.

        Returns:
            Why the files cannot be used, as a sentence for people; empty if the runtime uses them,
            or a policy of the application.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        return await self._running.reload_policies()

    async def links(self) -> tuple[LinkEntry, ...]:
        """Return the direct links of this runtime, one per remote runtime.

        If cancelled, nothing has changed.

        Raises:
            ActorStoppedError: The runtime has closed.
        """
        return await self._running.links()

    async def follow(
        self, machine: str, make: Callable[[str], M], about: str | None = None
    ) -> Following[M]:
        """Let models of the application follow the links, stubs or data objects of the runtime.

        A model is any object whose attribute `state` can be set. It is made at the first
        observed step of its entity, begins in the state that this step leaves, and then has
        each state of the entity. Entering a state calls the method `on_enter_<state>` of the
        model, leaving one `on_exit_<state>`, if there is such a method; `_` stands for each
        hyphen of the state. The argument is an `EventData` of `transitions`, whose
        `kwargs["step"]` is the step with its `cause`, and perhaps a `why`.

        A supervised task of its own calls the models soon after the step. The runtime does not
        wait for them; their exceptions are logged and counted.

        Args:
            machine: Machine of the entities: `p2p_connection` for direct links,
                `stub_connection` for stubs, `observer_copy` and `object_subscription` for data
                objects; or any other that `python -m fsm list` names, except `transaction`.
            make: Makes the model of an entity; it is called with the key of the entity.
            about: Address that the key of an entity must contain, such as the remote runtime of
                a link, or an object; None: all entities are followed.

        Returns:
            The models, and an async context manager that stops them.

        If cancelled, nothing is followed.

        Raises:
            TypeError: An argument is of a wrong kind.
            UnknownMachineError: There is no such machine; the error names the nearest one.
            ValueError: The machine is `transaction`, which steps too often to be followed.
            ActorStoppedError: The runtime has closed.
        """
        check_text(machine, "machine")
        check_type(about, (str, NoneType), "about")
        if not callable(make):
            raise TypeError(f"make must be a callable, not {type(make).__name__}")
        return await self._running.followers.follow(machine, make, about)

    def drops(self) -> DropLedger:
        """Return how many messages were not delivered, by reason, and the last of them."""
        return self._running.counters.ledger()

    @property
    def monitor_violations(self) -> int:
        """Number of attempted steps that no state machine declares; the log has each of them."""
        return self._running.counters.monitor_violations


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
    store: PathInput | None = None,
    credentials: Credentials = NO_CREDENTIALS,
) -> AbstractAsyncContextManager[Runtime]: ...


def open_runtime(
    domain: str | RuntimeConfig,
    name: str = "",
    *,
    node: str = "",
    network: Network | None = None,
    trace: Trace = None,
    store: PathInput | None = None,
    credentials: Credentials = NO_CREDENTIALS,
) -> AbstractAsyncContextManager[Runtime]:
    """Run a hyperty runtime while the context is open.

    With direct links configured, the runtime sets up its P2P handler stub before the block begins,
    and goes on without direct links if that fails. Otherwise it connects with the first message.
    When the block is left, the runtime undeploys its hyperties, ends links and data objects, and
    closes its sessions; while data objects are stored, it leaves the sessions to its next process.

    Args:
        domain: The domain of the runtime; or a complete configuration, which also says how to log
            in, transports of direct links, permitted messages, and routes to other domains.
        name: Name of the runtime in the domain; the same after a restart.
        node: URL of the message node of the domain: `Node.url`.
        network: Network on which the runtime dials and listens; None: the network of the
            operating system. On that one, message ids and expiry start at the time of day,
            for any configuration.
        trace: Directory or tracer that takes the trace of the runtime; None: no trace.
        store: SQLite file for data objects that outlive the process; it is made if it does not
            exist. See `report` of a hyperty. A complete configuration names its own file.
        credentials: Source of the tokens for logins at the node. A complete configuration names
            its own one.

    Returns:
        An async context manager that yields the running runtime.

    An error of the block is raised as itself; several errors are raised as a group.

    If the block is cancelled, the runtime still leaves in order, for at most `DRAIN_TIMEOUT`
    seconds.

    Raises:
        TypeError: At the call: an argument is of a wrong kind.
        BadUrlError: On entering: domain or name cannot be part of an address, or `node` is not a
            URL that can be dialled.
        PlainUrlError: On entering: a node on another machine would be dialled without TLS, and
            `RuntimeConfig.insecure` is not set; a `ValueError`.
        StoreFileError: On entering: the file of the store cannot be used.
        KeyFileError: On entering: the file of the runtime's key cannot be used.
        PolicyFileError: On entering: a policy file cannot be used.
        TraceDirectoryError: On entering: the trace directory cannot be made or written.
        RestartLimitError: A core part of the runtime crashed, which is a bug.
        HypertyFailedError: A hyperty was given up, and `RuntimeConfig.stop_on_failure` is set.
    """
    check_type(domain, (str, RuntimeConfig), "domain")
    check_resources(network, trace)
    if isinstance(domain, str):
        if not name or not node:
            raise TypeError(f"open_runtime: {'node' if name else 'name'} is missing")
        place = as_path_or_none(store)
        domain = RuntimeConfig(
            domain=domain, name=name, node=node, store=place, credentials=credentials
        )
    return _open(domain, network, trace)


@asynccontextmanager
async def _open(
    config: RuntimeConfig, network: Network | None, trace: Trace
) -> AsyncIterator[Runtime]:
    check_trio()
    domain_name(config.domain)
    runtime_name(config.name)
    if network is None:
        if config.node is not None:
            check_dialled(config.node)
        config = _by_the_clock(config)
    check_plain(config.servers, network, insecure=config.insecure)
    with bare_error():
        async with _running(config, network, trace) as running:
            yield Runtime(running)


@asynccontextmanager
async def _running(
    config: RuntimeConfig, network: Network | None, trace: Trace
) -> AsyncIterator[RunningRuntime]:
    async with (
        open_tracer(trace, config.name) as tracer,
        open_network(network, config.tls) as carrier,
        runtime_app.open_runtime(config, carrier, tracer) as running,
    ):
        yield running


def _by_the_clock(config: RuntimeConfig) -> RuntimeConfig:
    """Start message ids and clocks at the time of day."""
    access, offset = config.catalogues, clock_offset()
    if access is not None:
        access = attrs.evolve(access, clock_offset=offset)
    return attrs.evolve(config, ids=fresh_ids(), catalogues=access, clock_offset=offset)
