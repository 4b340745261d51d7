"""`python -m actors runtime`: a runtime with the hyperties named as NAME=module:Class."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from enum import Enum, unique
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
import trio

from actors.catalogue.source import Places
from actors.cli.config_file import config_option
from actors.cli.failure import Needs, run, say_ready
from actors.cli.group import CommandError
from actors.cli.lifetime import serve
from actors.cli.node_access import check_host, check_node, credentials_options, enter
from actors.cli.options import (
    FILE_OPTION,
    Count,
    OpenTracer,
    Quantity,
    check_address,
    check_domain,
    check_kinds,
    check_name,
    check_node_url,
    check_server,
    check_user,
    choice,
    client_tls_options,
    http_options,
    ice_option,
    identity_option,
    if_given,
    log_option,
    made_from,
    monitor_option,
    policy_options,
    trace_options,
)
from actors.cli.reloading import reloading
from actors.commands.catalogues import (
    believed,
    catalogue_access,
    catalogue_option,
    nodes_option,
    timed,
    topology_option,
    trust_option,
)
from actors.keys.key_file import open_key_file
from actors.kit.database import flaw_of
from actors.kit.ids import fresh_ids
from actors.kit.log import get_logger
from actors.kit.supervision.supervisor import Crash
from actors.pipe.plan import SandboxError
from actors.policy.store import PolicyConfig, read_policies
from actors.runtime.app import open_runtime, own_identity
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.isolation.hyperty import HypertyCode
from actors.runtime.isolation.loading import HypertyLoadError
from actors.runtime.runtime import Runtime
from actors.runtime.store.file import FORM, StoreFileError
from actors.runtime.store.runtime_store import open_store
from actors.runtime.stubs.stub import LOOPBACK
from fsm.limits.shares import MIB, TOTALS, SandboxTotals
from fsm.p2p.dialling import LinkPolicy, P2pUse, P2pWait, PeerPolicy
from specs.addresses import address
from specs.addresses.address import (
    RUNTIME_SCHEME,
    CatalogueType,
    Entry,
    read_entry,
    runtime_of,
    scheme_of,
)
from specs.bodies.word import StatusValue
from specs.errors import BadUrlError, ProtoflyError
from specs.identity import VouchedBy
from specs.jsonvalue import Json
from specs.limits.foreign_code import SANDBOXES_CPU_LEAST
from specs.limits.protocol import SANDBOX_MEMORY, STUB_IDLE, STUB_IDLE_LEAST
from specs.limits.transfer import TRANSFER_BYTES, TRANSFER_MOST
from transports.link import Kind
from transports.system import open_system_network

_log = get_logger("actors.commands")

_FORM: Final = re.compile(r"([A-Za-z0-9_-]+)=([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def check_hyperties(
    _: click.Context, __: click.Parameter, value: tuple[str, ...]
) -> dict[str, str]:
    """Return `module:Class` by name; refuse another form or a name given twice."""
    found: dict[str, str] = {}
    for one in value:
        match = _FORM.fullmatch(one)
        if match is None:
            raise click.BadParameter(f"{one!r} is not of the form NAME=module:Class")
        if match[1] in found:
            raise click.BadParameter(f"{match[1]!r} is named twice")
        found[match[1]] = f"{match[2]}:{match[3]}"
    return found


def check_loaded(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    """Return catalogue addresses of hyperties by name; refuse others, or a name given twice."""
    found: dict[str, str] = {}
    for one in value:
        entry = _entry(one, CatalogueType.HYPERTY)
        if entry.name in found:
            raise click.BadParameter(f"{entry.name!r} is named twice")
        found[entry.name] = entry.address
    return found


def _entry(address: str, kind: CatalogueType) -> Entry:
    """Read the catalogue address of a descriptor of some type.

    Raises:
        BadParameter: It is none.
    """
    try:
        entry, attribute = read_entry(address)
    except BadUrlError as error:
        raise click.BadParameter(str(error)) from error
    if entry.type is not kind or attribute is not None:
        raise click.BadParameter(f"{address!r} describes no {kind}; name .../{kind}/NAME")
    return entry


def check_described(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Return the catalogue address of a runtime; refuse another one."""
    return None if value is None else _entry(value, CatalogueType.RUNTIME).address


def load_hyperty(where: str) -> type[Hyperty]:
    """Import a hyperty's class.

    Raises:
        CommandError: There is none.
    """
    module, _, name = where.partition(":")
    found: object = None
    with Crash() as crash:
        found = vars(import_module(module)).get(name)
    if isinstance(crash.error, ImportError):
        raise CommandError(
            f"cannot import {module}: {crash.error}; correct --hyperty"
        ) from crash.error
    if crash.error is not None:
        raise crashed(where, crash.error) from crash.error
    if not isinstance(found, type) or not issubclass(found, Hyperty):
        raise CommandError(f"{module} has no hyperty {name!r}; correct --hyperty")
    _check_making(where, found)
    return found


def crashed(where: str, error: Exception) -> CommandError:
    """Log what came out of a hyperty's code before it ran; return it as a sentence."""
    _log.info("hyperty crashed", hyperty=where, exc_info=error)
    return CommandError(
        f"{where} could not be started: {type(error).__name__}: {error}; "
        "correct it, or see with --log info where it crashed"
    )


def _check_making(where: str, made: type[Hyperty]) -> None:
    try:
        signature(made).bind()
    except TypeError as exc:
        raise CommandError(
            f"{where} cannot be made without arguments: {exc}; "
            "name a class whose __init__ needs none with --hyperty"
        ) from exc


_BELOW: Final = "*."
_USES: Final = ", ".join(P2pUse)


def _check_peers(
    ctx: click.Context, option: click.Parameter, value: tuple[str, ...]
) -> tuple[PeerPolicy, ...]:
    """Return the policy of each peer; refuse an unknown peer or use."""
    return tuple(_peer(ctx, option, one) for one in value)


def _peer(ctx: click.Context, option: click.Parameter, text: str) -> PeerPolicy:
    peer, _, use = text.rpartition("=")
    if use not in list(P2pUse):
        raise click.BadParameter(f"{text!r} is no PEER=USE; a use is one of {_USES}")
    if "://" not in peer:
        below = peer.removeprefix(_BELOW)
        domain = check_domain(ctx, option, below)
        return PeerPolicy(f"{peer[: len(peer) - len(below)]}{domain}", P2pUse(use))
    try:
        is_runtime = scheme_of(peer) == RUNTIME_SCHEME and runtime_of(peer) == peer
    except BadUrlError as error:
        raise click.BadParameter(str(error)) from error
    if not is_runtime:
        raise click.BadParameter(f"{peer!r} is neither a domain nor the address of a runtime")
    return PeerPolicy(peer, P2pUse(use))


def _links(p2p_use: P2pUse, p2p_peer: tuple[PeerPolicy, ...], p2p_wait: P2pWait) -> LinkPolicy:
    return LinkPolicy(p2p_use, p2p_peer, p2p_wait)


links_options = made_from(
    "links",
    _links,
    click.option(
        "--p2p-use",
        **choice(P2pUse, P2pUse.WHENEVER_POSSIBLE),
        help="When to open direct links to other runtimes.",
    ),
    click.option(
        "--p2p-peer",
        metavar="PEER=USE",
        multiple=True,
        callback=_check_peers,
        help="The same for one DOMAIN, *.DOMAIN or runtime; repeatable, the first match counts.",
    ),
    click.option(
        "--p2p-wait",
        **choice(P2pWait, P2pWait.OPPORTUNISTIC),
        help="While a link is set up, send by the node, or wait for the link for a time.",
    ),
)
"""The options `--p2p-use`, `--p2p-peer` and `--p2p-wait`, as a `LinkPolicy`."""


Deploy: TypeAlias = Callable[[Runtime, str], Awaitable[str]]
"""Has a hyperty run in a runtime, by a name; returns its address."""


@unique
class Housing(Enum):
    """Processes in which hyperties run."""

    NURSERY = "nursery"
    """In this process: a crash or a wait is no matter of others, a loop without an await is."""

    PROCESS = "process"
    """Each in a sandbox process of its own."""


def housed(hyperties: Mapping[str, str], housing: Housing) -> dict[str, Deploy]:
    """Return what deploys each hyperty, given as `module:Class` by name.

    Raises:
        CommandError: One is not there; of those in processes that shows when they start.
    """
    if housing is Housing.NURSERY:
        return {
            name: partial(_deploy, where, load_hyperty(where)) for name, where in hyperties.items()
        }
    codes = {name: HypertyCode(where) for name, where in hyperties.items()}
    return {name: partial(_deploy_apart, code) for name, code in codes.items()}


def _loaded(addresses: Mapping[str, str]) -> dict[str, Deploy]:
    """Return what loads each hyperty, given as its catalogue address by name."""
    return {name: partial(_load, address) for name, address in addresses.items()}


async def _load(address: str, runtime: Runtime, name: str) -> str:
    try:
        return (await runtime.load(address, name)).url
    except HypertyLoadError as exc:
        raise CommandError(f"{exc}; correct --load, --catalogue or --trust") from exc


async def _deploy(where: str, made: type[Hyperty], runtime: Runtime, name: str) -> str:
    url = ""
    with Crash() as crash:
        url = await runtime.deploy(name, made)
    if crash.error is None:
        return url
    if isinstance(crash.error, ProtoflyError):
        raise crash.error
    raise crashed(where, crash.error) from crash.error


async def _deploy_apart(code: HypertyCode, runtime: Runtime, name: str) -> str:
    try:
        return (await runtime.settle_apart(name, code)).url
    except SandboxError as exc:
        raise CommandError(
            f"cannot run {code.where} in a sandbox: {exc.reason}; correct --hyperty, or run it "
            "in this process with --sandbox nursery"
        ) from exc


def _check_owner(ctx: click.Context, option: click.Parameter, value: str) -> str:
    """Return the address of a user."""
    user = check_user(ctx, option, value)
    if scheme_of(check_address(ctx, option, user)) != "user":
        raise click.BadParameter(f"{value!r} is no user such as user://a.example/bob")
    return user


@click.command("runtime")
@click.option("--domain", required=True, callback=check_domain, help="The domain of the runtime.")
@click.option(
    "--name", required=True, callback=check_name, help="The name of the runtime in its domain."
)
@click.option(
    "--node",
    metavar="URL",
    callback=if_given(check_node_url),
    help="The domain's message node, such as ws://127.0.0.1:4123/link.",
)
@click.option(
    "--registry",
    metavar="URL",
    callback=if_given(check_server),
    help="The registry of a domain without a node, such as http://127.0.0.1:4567.",
)
@click.option(
    "--hyperty",
    metavar="NAME=module:Class",
    multiple=True,
    callback=check_hyperties,
    help="Deploy this hyperty; repeatable. Try echo=actors.hyperties:Echo.",
)
@click.option(
    "--load",
    metavar="URL",
    multiple=True,
    callback=check_loaded,
    help="Run the hyperty that a signed descriptor of a catalogue describes, in a sandbox process; "
    "repeatable. Its domain needs --catalogue and --trust.",
)
@click.option(
    "--sandbox",
    **choice(Housing, Housing.NURSERY),
    help="Where hyperties run: in this process, or each in a sandbox process of its own.",
)
@click.option(
    "--sandbox-memory",
    metavar="MIB",
    type=Count(min=SANDBOX_MEMORY // MIB),
    default=TOTALS.memory // MIB,
    help="Memory that all sandbox processes may use together, in MiB.",
)
@click.option(
    "--sandbox-cpu",
    metavar="PROCESSORS",
    type=Quantity(min=SANDBOXES_CPU_LEAST),
    default=TOTALS.cpu,
    help="Processors that all sandbox processes may use together, such as 0.5.",
)
@click.option(
    "--largest-body",
    metavar="MIB",
    type=Count(1, TRANSFER_MOST // MIB),
    default=TRANSFER_BYTES // MIB,
    help="Size of the largest request or answer of a hyperty, in MiB of JSON; more is refused 413.",
)
@click.option(
    "--p2p",
    metavar="KINDS",
    default="unix,tcp,websocket",
    callback=check_kinds,
    help="Transports of links to other runtimes, best first; none for no links.",
)
@click.option(
    "--p2p-host",
    metavar="HOST",
    default=LOOPBACK,
    help="Host on which links by websocket and tcp are accepted. A private address or a name "
    "is offered only to peers that --p2p-peer names.",
)
@links_options
@click.option(
    "--p2p-require",
    **choice(VouchedBy),
    help="Who has to vouch for the other end of a link; else messages go by the node. Default: "
    "domain where this runtime logs in, else none.",
)
@ice_option
@click.option(
    "--ice-relay-only",
    is_flag=True,
    help="Links by webrtc use nothing but servers of TURN: no peer learns an address of this "
    "machine.",
)
@topology_option
@nodes_option
@click.option(
    "--stub-idle",
    metavar="SECONDS",
    type=Quantity(min=STUB_IDLE_LEAST),
    default=STUB_IDLE,
    help="Release the connection to another domain after this time without use.",
)
@catalogue_option
@trust_option
@click.option(
    "--descriptor",
    metavar="URL",
    callback=check_described,
    help="Catalogue address of this runtime's descriptor, which names the stubs of its direct "
    "links; its domain needs --catalogue and --trust.",
)
@credentials_options
@client_tls_options("foreign")
@identity_option
@policy_options
@click.option(
    "--publish-status",
    is_flag=True,
    help="Notify runtimes that subscribe to the status of this one when it is live or leaves.",
)
@click.option(
    "--user",
    metavar="USER",
    callback=if_given(_check_owner),
    help="Address of the user who owns the hyperties, such as user://a.example/bob "
    "[default: the user of the login].",
)
@click.option(
    "--store",
    **FILE_OPTION,
    help="File that keeps stored data objects over the end of the process.",
)
@http_options
@trace_options
@monitor_option
@config_option
@log_option
def command(  # type: ignore[explicit-any]  # noqa: PLR0913 - one for each option
    *,
    domain: str,
    name: str,
    hyperty: dict[str, str],
    load: dict[str, str],
    sandbox: Housing,
    sandbox_memory: int,
    sandbox_cpu: float,
    largest_body: int,
    p2p: tuple[Kind, ...],
    foreign: dict[str, str],
    places: Places | None,
    trust: Path | None,
    descriptor: str | None,
    policies: PolicyConfig,
    trace: OpenTracer,
    **same: Any,
) -> int:
    """Run a hyperty runtime until SIGTERM or Ctrl-C.

    Prints one line of JSON when it is ready, with the addresses of its hyperties.
    """
    if descriptor is not None and places is None:
        raise click.UsageError("--descriptor needs --catalogue and --trust")
    if same["node"] is not None and same["registry"] is not None:
        raise click.UsageError("a domain with a --node has no --registry; remove one of them")
    if load and places is None:
        raise click.UsageError("--load needs --catalogue and --trust")
    if load.keys() & hyperty.keys():
        raise click.UsageError(
            "--load and --hyperty name the same hyperty; rename that of --hyperty"
        )
    crew = {**housed(hyperty, sandbox), **_loaded(load)}
    config = RuntimeConfig(
        domain=domain,
        name=name,
        sandboxes=SandboxTotals(sandbox_memory * MIB, sandbox_cpu),
        largest_body=largest_body * MIB,
        kinds=p2p,
        trust=None if places is not None else believed(trust),
        nodes=foreign,
        catalogues=None if places is None else catalogue_access(places, trust, f"{domain}.{name}"),
        descriptor=descriptor,
        policy=policies,
        ids=fresh_ids(),
        **same,  # options with the names of fields
    )
    service = partial(_open, config, crew, trace)
    needs = Needs(
        partial(_check, config), {} if config.http is None else {"--http": [config.http.listen]}
    )
    return run(partial(serve, service, partial(_announce, config)), needs=needs)


def _check(config: RuntimeConfig) -> None:
    """Look at what the runtime opens at its start, as it does.

    Raises:
        StoreFileError: The file of the store cannot be used.
        KeyFileError: The file of the runtime's key cannot be used.
        PolicyFileError: A policy file cannot be used.
        OpenMetricsError: Every client could read the metrics.
    """
    if config.store is not None and (why := flaw_of(config.store, FORM)):
        raise StoreFileError(config.store, why)
    identity = config.identity_file
    if identity is not None and identity.exists():
        open_key_file(identity)
    if isinstance(config.policy, PolicyConfig):
        read_policies(config.policy.files)
    if config.http is not None:
        from actors.http.service import check_readers  # noqa: PLC0415 - slow to import

        check_readers(config.http, config.http.listen)


@asynccontextmanager
async def _open(
    config: RuntimeConfig, crew: Mapping[str, Deploy], trace: OpenTracer
) -> AsyncIterator[dict[str, Json]]:
    if config.node is None and config.registry is None and config.catalogues is None:
        raise CommandError("the domain has no server; add --node, --registry or --catalogue")
    with open_store(config.store):
        # Errors in it, in the file of the key, and in policies are reported before any dial.
        own_identity(config)
        if isinstance(config.policy, PolicyConfig):
            read_policies(config.policy.files)
    async with open_system_network(config.tls) as network:
        # A run that could not begin leaves no trace.
        await check_host(network, config.p2p_host, config.kinds)
        await check_node(network, config.node)
        async with (
            trace(config.name) as tracer,
            open_runtime(timed(config), network, tracer) as runtime,
            reloading([runtime.reload_policies]),
        ):
            await enter(runtime)
            hyperties: dict[str, Json] = {
                name: await deploy(runtime, name) for name, deploy in crew.items()
            }
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_end_with_session, runtime)
                yield {"hyperties": hyperties, "http_url": runtime.http_url}
                nursery.cancel_scope.cancel()


async def _end_with_session(runtime: Runtime) -> None:
    """Wait until the node ends the session for good.

    Raises:
        CommandError: It has; with the reason.
    """
    async for status in runtime.status.changes():
        if status is StatusValue.FAILED:
            await enter(runtime)


def _announce(config: RuntimeConfig, fields: dict[str, Json]) -> None:
    url = address.runtime(config.domain, config.name)
    say_ready("runtime", config.domain, url=url, **fields)
