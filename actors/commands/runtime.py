"""`python -m actors runtime`: a runtime with the hyperties named as NAME=module:Class."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
import trio

from actors.catalogue.source import Places
from actors.cli import failure, lifetime, options, own_runtime
from actors.cli.group import CommandError, advise_on
from actors.cli.options import DOMAIN, Count, OpenTracer, Quantity, define_command
from actors.cli.reloading import reloading
from actors.keys.key_file import open_key_file
from actors.kit import database, http_client, ids, log
from actors.kit.supervision.supervisor import Crash
from actors.pipe.plan import SandboxError
from actors.policy.store import PolicyConfig, read_policies
from actors.runtime.app import own_identity
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty.hyperty import Hyperty
from actors.runtime.isolation import HypertyCode, HypertyLoadError
from actors.runtime.runtime import Runtime
from actors.runtime.store import file, runtime_store
from fsm.commands.parameters import fields, group, option
from fsm.limits.shares import MIB, TOTALS, SandboxTotals
from fsm.p2p.link_policy import LinkPolicy, P2pUse, P2pWait, PeerPolicy
from specs import errors, jsonvalue
from specs.addresses import address
from specs.addresses.address import CatalogueType, Entry
from specs.bodies.word import StatusValue
from specs.limits import foreign_code, protocol, transfer

_log = log.get_logger("actors.commands")

_FORM: Final = re.compile(r"([A-Za-z0-9_-]+)=([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def _read_hyperty(text: str) -> tuple[str, str]:
    """Return name and `module:Class`."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not of the form NAME=module:Class")
    return match[1], f"{match[2]}:{match[3]}"


def _named_once(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    named: dict[str, str] = {}
    for name, where in pairs:
        if name in named:
            raise click.BadParameter(f"{name!r} is named twice")
        named[name] = where
    return named


def _read_entry(kind: CatalogueType, text: str) -> Entry:
    """Read the catalogue address of a descriptor of some type; refuse another one."""
    entry, attribute = address.read_entry(text)
    if entry.type is not kind or attribute is not None:
        raise click.BadParameter(f"{text!r} describes no {kind}; name .../{kind}/NAME")
    return entry


def _read_loaded(text: str) -> tuple[str, str]:
    """Return name and catalogue address of a hyperty."""
    entry = _read_entry(CatalogueType.HYPERTY, text)
    return entry.name, entry.address


def load_hyperty(where: str) -> type[Hyperty]:
    """Import the class of a hyperty.

    Raises:
        CommandError: There is no such class.
    """
    module, _, name = where.partition(":")
    kind: object = None
    with Crash() as crash:
        kind = vars(import_module(module)).get(name)
    if isinstance(crash.error, ImportError):
        why = f"cannot import {module}: {crash.error}; correct --hyperty"
        raise CommandError(why) from crash.error
    if crash.error is not None:
        raise log_crash(where, crash.error) from crash.error
    if not isinstance(kind, type) or not issubclass(kind, Hyperty):
        raise CommandError(f"{module} has no hyperty {name!r}; correct --hyperty")
    what, advice = f"{where} cannot be made without arguments", "name a class whose __init__ needs"
    with advise_on(TypeError, what=what, advice=f"{advice} none with --hyperty"):
        signature(kind).bind()
    return kind


def log_crash(where: str, error: Exception) -> CommandError:
    """Log an exception of a hyperty's code before the hyperty ran; return it as a sentence."""
    _log.info("hyperty crashed", hyperty=where, exc_info=error)
    return CommandError(
        f"{where} could not be started: {type(error).__name__}: {error}; "
        "correct it, or see with --log info where it crashed"
    )


_BELOW: Final = "*."


def _read_peer(text: str) -> PeerPolicy:
    """Return the policy of a peer; refuse an unknown peer or use."""
    peer, _, use = text.rpartition("=")
    if use not in list(P2pUse):
        known = ", ".join(P2pUse)
        raise click.BadParameter(f"{text!r} is no PEER=USE; a use is one of {known}")
    if "://" not in peer:
        below = peer.removeprefix(_BELOW)
        return PeerPolicy(f"{peer.removesuffix(below)}{DOMAIN(below)}", P2pUse(use))
    is_runtime = address.scheme_of(peer) == address.RUNTIME_SCHEME
    if not is_runtime or address.runtime_of(peer) != peer:
        raise click.BadParameter(f"{peer!r} is neither a domain nor the address of a runtime")
    return PeerPolicy(peer, P2pUse(use))


def read_links(
    *,
    p2p_use: P2pUse = option(default=P2pUse.WHENEVER_POSSIBLE),
    p2p_peer: tuple[PeerPolicy, ...] = option("PEER=USE", read=_read_peer),
    p2p_wait: P2pWait = option(default=P2pWait.OPPORTUNISTIC),
) -> LinkPolicy:
    """Return to which runtimes links are wanted.

    Args:
        p2p_use: When to open direct links to other runtimes.
        p2p_peer: The same for one DOMAIN, *.DOMAIN or runtime; repeatable, the first match counts.
        p2p_wait: While a direct link is set up, send by the node, or wait up to 10 seconds.
    """
    return LinkPolicy(p2p_use, p2p_peer, p2p_wait)


def _sandboxes(
    *,
    sandbox_memory: int = option(
        "MIB", type=Count(min=protocol.SANDBOX_MEMORY // MIB), default=TOTALS.memory // MIB
    ),
    sandbox_cpu: float = option(
        "PROCESSORS", type=Quantity(min=foreign_code.SANDBOXES_CPU_LEAST), default=TOTALS.cpu
    ),
) -> SandboxTotals:
    """Return what all sandbox processes may use.

    Args:
        sandbox_memory: Memory that all sandbox processes may use together, in MiB.
        sandbox_cpu: Processors that all sandbox processes may use together, such as 0.5.
    """
    return SandboxTotals(sandbox_memory * MIB, sandbox_cpu)


Deploy: TypeAlias = Callable[[Runtime, str], Awaitable[str]]
"""Runs a hyperty in a runtime, under a name; returns its address."""


class Housing(Enum):
    """Processes in which hyperties run."""

    NURSERY = "nursery"
    """In this process: a crash or a wait is no matter of others, a loop without an await is."""

    PROCESS = "process"
    """Each in a sandbox process of its own."""


def make_deployers(hyperties: Mapping[str, str], housing: Housing) -> dict[str, Deploy]:
    """Return the function that deploys each hyperty, given as `module:Class` by name.

    Raises:
        CommandError: A hyperty does not exist. Hyperties in processes are checked at their start.
    """
    if housing is Housing.NURSERY:
        return {
            name: partial(_deploy, where, load_hyperty(where)) for name, where in hyperties.items()
        }
    return {name: partial(_deploy_apart, HypertyCode(where)) for name, where in hyperties.items()}


async def _load(where: str, runtime: Runtime, name: str) -> str:
    with advise_on(HypertyLoadError, advice="correct --load, --catalogue or --trust"):
        return (await runtime.load(where, name)).url


async def _deploy(where: str, kind: type[Hyperty], runtime: Runtime, name: str) -> str:
    url = ""
    with Crash() as crash:
        url = await runtime.deploy(name, kind)
    if crash.error is None:
        return url
    if isinstance(crash.error, errors.ProtoflyError):
        raise crash.error
    raise log_crash(where, crash.error) from crash.error


async def _deploy_apart(code: HypertyCode, runtime: Runtime, name: str) -> str:
    what = f"cannot run {code.where} in a sandbox"
    advice = "correct --hyperty, or run it in this process with --sandbox nursery"
    with advise_on(SandboxError, what=what, advice=advice):
        return (await runtime.run_in_sandbox(name, code)).url


def _read_owner(text: str) -> str:
    """Return the address of a user."""
    user = address.canonical(options.read_user(text))
    if address.scheme_of(user) != "user":
        raise click.BadParameter(f"{text!r} is no user such as user://a.example/bob")
    return user


_REACH: Final = fields(
    RuntimeConfig,
    domain=option(read=DOMAIN),
    name=option(read=options.NAME),
    node=option("URL", read=options.NODE_URL),
    registry=option("URL", read=lambda text: http_client.ServerUrl.read(text).text),
)

_MORE: Final = fields(
    RuntimeConfig,
    sandboxes=group(_sandboxes),
    largest_body=option(
        "MIB",
        text="Size of the largest request or answer of a hyperty, in MiB of JSON; more is refused "
        "413.",
        type=Count(1, transfer.TRANSFER_MOST // MIB),
        default=transfer.TRANSFER_BYTES // MIB,
        read=lambda count: count * MIB,
    ),
    answer_within=option("SECONDS", type=Quantity(min=0, max=protocol.ANSWER_WITHIN_MOST)),
    kinds=option(
        "KINDS",
        text="Transports of direct links to other runtimes, best first; none: no direct links.",
        name="p2p",
        multiple=False,
        default="unix,tcp,websocket",
        read=options.read_kinds,
    ),
    p2p_host=option("HOST"),
    links=group(read_links),
    p2p_require=option(),
    ice=options.ICE,
    ice_relay_only=option(),
    topology=option(),
    nodes=own_runtime.FOREIGN,
    stub_idle=option("SECONDS", type=Quantity(min=protocol.STUB_IDLE_LEAST)),
    descriptor=option("URL", read=lambda text: _read_entry(CatalogueType.RUNTIME, text).address),
    **own_runtime.LOGIN,
    identity=option(),
    policy=options.POLICIES,
    publish_status=option(),
    user=option("USER", read=_read_owner),
    store=option(),
    http=group(options.http_config),
    monitor=option(),
    **options.OTLP,
)


@define_command("runtime", has_log=True)
def command(  # type: ignore[explicit-any] # values of fields
    *,
    reach: dict[str, Any] = _REACH,
    hyperty: dict[str, str] = option("NAME=module:Class", read=_read_hyperty, gather=_named_once),
    load: dict[str, str] = option("URL", read=_read_loaded, gather=_named_once),
    places: Places | None = options.catalogue_option(flag="--catalogue"),
    trust: Path | None = options.TRUST,
    sandbox: Housing = option(default=Housing.NURSERY),
    more: dict[str, Any] = _MORE,
    trace: OpenTracer = options.TRACE,
) -> int:
    """Run a hyperty runtime until SIGTERM or Ctrl-C.

    Prints one line of JSON when it is ready, with the addresses of its hyperties.

    Args:
        hyperty: Deploy this hyperty; repeatable. Try echo=actors.hyperties:Echo.
        load: Run the hyperty that a signed descriptor of a catalogue describes, in a sandbox
            process; repeatable. Its domain needs --catalogue and --trust.
        sandbox: Where hyperties run: in this process, or each in a sandbox process of its own.
    """
    where = f"{reach['domain']}.{reach['name']}"
    access = None if places is None else options.catalogue_access(places, trust, where)
    others = options.load_trust(trust) if places is None else None
    config = RuntimeConfig(**reach, **more, catalogues=access, trust=others, ids=ids.fresh_ids())
    if config.descriptor is not None and config.catalogues is None:
        raise click.UsageError("--descriptor needs --catalogue and --trust")
    if config.node is not None and config.registry is not None:
        raise click.UsageError("a domain with a --node has no --registry; remove one of them")
    if load and config.catalogues is None:
        raise click.UsageError("--load needs --catalogue and --trust")
    if load.keys() & hyperty.keys():
        raise click.UsageError(
            "--load and --hyperty name the same hyperty; rename that of --hyperty"
        )
    deployers = make_deployers(hyperty, sandbox)
    deployers |= {name: partial(_load, where) for name, where in load.items()}
    service = partial(_open, config, deployers, trace)
    listen = {} if config.http is None else {"--http": [config.http.listen]}
    work = partial(lifetime.serve, service, partial(_announce, config))
    return failure.run(work, check=partial(_check, config), listen=listen)


def _check(config: RuntimeConfig) -> None:
    """Check the files that the runtime opens at its start.

    Raises:
        StoreFileError: The file of the store cannot be used.
        KeyFileError: The file of the runtime's key cannot be used.
        PolicyFileError: A policy file cannot be used.
        OpenMetricsError: Any client could read the metrics.
    """
    if config.store is not None and (why := database.flaw_of(config.store, file.FORM)):
        raise file.StoreFileError(config.store, why)
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
    config: RuntimeConfig, deployers: Mapping[str, Deploy], trace: OpenTracer
) -> AsyncIterator[dict[str, jsonvalue.Json]]:
    if config.node is None and config.registry is None and config.catalogues is None:
        raise CommandError("the domain has no server; add --node, --registry or --catalogue")
    with runtime_store.open_store(config.store):
        # Errors in the configuration, the key file and the policies are reported before any dial.
        own_identity(config)
        if isinstance(config.policy, PolicyConfig):
            read_policies(config.policy.files)
    async with (
        own_runtime.open_own_runtime(config, trace) as runtime,
        reloading([runtime.reload_policies]),
    ):
        await own_runtime.enter(runtime)
        hyperties: dict[str, jsonvalue.Json] = {
            name: await deploy(runtime, name) for name, deploy in deployers.items()
        }
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_with_session, runtime)
            yield {"hyperties": hyperties, "http_url": runtime.http_url}
            nursery.cancel_scope.cancel()


async def _end_with_session(runtime: Runtime) -> None:
    """Wait until the node ends the session for good.

    Raises:
        CommandError: The session has ended, with the reason.
    """
    async for status in runtime.status.changes():
        if status is StatusValue.FAILED:
            await own_runtime.enter(runtime)


def _announce(config: RuntimeConfig, ready: dict[str, jsonvalue.Json]) -> None:
    failure.say_ready("runtime", config.domain, url=config.runtime, **ready)
