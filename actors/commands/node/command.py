"""`python -m actors node`: the message node of a domain."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import click
import trio

from actors.cli import failure, group, lifetime, options
from actors.cli.options import OpenTracer, define_command, places_from
from actors.cli.reloading import ReloadableOptions, reloading
from actors.commands.node.fields import FIELDS
from actors.keys.certificate import invalid_time_reason
from actors.kit import database, ids, log
from actors.node import app, errors
from actors.node.config import NodeConfig
from actors.node.registry.record_file import FORM as RECORDS
from actors.node.state.file import FORM as STATE
from actors.policy.store import read_policies
from fsm.commands import parameters
from fsm.registry.node_rights import Names
from specs.jsonvalue import JsonObject
from transports import system, tls

if TYPE_CHECKING:
    from actors.commands.node.processes import Member

_log = log.get_logger("actors.node")


@attrs.define
class _Certificate:
    """The certificate of a listener, which can be reloaded.

    Attributes:
        prefix: Prefix of the names of its two options, such as `tls_`.
        context: The TLS context with the certificate.
        cert: File of the certificate.
        key: File of its private key.
    """

    prefix: str
    context: ssl.SSLContext
    cert: Path
    key: Path

    async def reload(self) -> None:
        """Load the present contents of the files, if they can be used."""
        try:
            tls.load_identity(self.context, self.cert, self.key)
        except tls.TlsFileError as exc:
            _log.error("certificates are not read again", reason=str(exc))
        else:
            _log.info("certificates were read again")
        await trio.lowlevel.checkpoint()

    @property
    def reloadable(self) -> ReloadableOptions:
        """The options of the files, which can change while the node runs."""
        names = frozenset({f"{self.prefix}cert", f"{self.prefix}key"})
        return ReloadableOptions(names, self._take)

    def _take(self, values: Mapping[str, object]) -> bool:
        cert, key = (values[f"{self.prefix}{end}"] for end in ("cert", "key"))
        if not isinstance(cert, Path) or not isinstance(key, Path):
            return False
        tls.load_identity(self.context, cert, key)
        self.cert, self.key = cert, key
        return True


def _validity_errors(certificates: Sequence[_Certificate]) -> list[str]:
    """Return the certificates that are not valid now, with the reasons."""
    now = datetime.now(UTC)
    return [why for each in certificates if (why := invalid_time_reason(each.cert, now))]


PROFILES: Final[Mapping[str, Mapping[str, object]]] = {
    "upstream": {
        "allow_legacy": True,
        "loose_names": True,
        "message_rate": "none",
        "handshake_rate": "none",
        "max_unauthenticated": "10000",
        "max_unauthenticated_per_host": "10000",
        "outbox_messages": "none",
        "outbox_bytes": "512MiB",
        "outbox_budget": "1GiB",
    }
}
"""The options of each profile, as a file of options would name them.

`upstream`: upstream's own test suites, which send as quickly as they can, 100 MB at once, and open
1,000 connections from one host.
"""


def _use_profile(ctx: click.Context, _: click.Parameter, name: str | None) -> str | None:
    """Set the defaults of other options; a file of options overrides a profile."""
    if name is not None:
        ctx.default_map = {**PROFILES[name], **(ctx.default_map or {})}
    return name


_URLS: Final = ("url", "legacy_url", "session_url", "http_url", "rest_url")
"""Fields of the ready line."""

_OWN: Final = ("pid", "http_url", "rest_url")
"""Fields of the ready line that each of several processes has of its own."""


_LOCKED: Final = (
    "no runtime can open a session at this node: it has no keys to verify logins "
    "with; name them with --jwks, or admit all runtimes with --allow-legacy"
)

_OWN_KEY: Final = (
    "this node makes a domain key of its own, which other nodes of the domain do not know; give "
    "all of them the same --domain-key"
)

_FIXED: Final = (
    "a session in upstream's forms stays in the process that has opened it; a runtime that "
    "connects again and reaches another process is refused (409)"
)


def _remarks(
    config: NodeConfig, certificates: Sequence[_Certificate], *, is_locked: bool, processes: int
) -> tuple[str, ...]:
    """Return what the operator should know about the configuration of a node."""
    remarks = [_LOCKED] if is_locked else []
    remarks += [
        options.open_key(each.key) for each in certificates if tls.is_open_to_others(each.key)
    ]
    remarks += [f"{why}; peers will not accept it" for why in _validity_errors(certificates)]
    if config.engine is not None and not config.domain_keys:
        remarks.append(_OWN_KEY)
    if processes > 1 and config.allow_legacy:
        remarks.append(_FIXED)
    return tuple(remarks)


@define_command("node", has_log=True)
def command(  # type: ignore[explicit-any]  # noqa: PLR0913 - values of fields; one for each option
    *,
    same: dict[str, Any] = FIELDS,
    trace: OpenTracer = options.TRACE,
    profile: str | None = parameters.option(
        type=click.Choice(list(PROFILES)), is_eager=True, callback=_use_profile
    ),
    jwks: tuple[str, ...],
    tls_cert: Path,
    tls_key: Path,
    http_tls_cert: Path,
    http_tls_key: Path,
    processes: int,
) -> int:
    """Run the message node of a domain until SIGTERM or Ctrl-C.

    Prints one line of JSON when it is ready, with the addresses it listens on.

    Args:
        profile: A named set of options; each can still be set by itself.
    """
    del profile  # it is read before the other options
    config = NodeConfig(**same, ids=ids.fresh_ids())
    if config.names is Names.LOOSE and not config.allow_legacy:
        raise group.CommandError("--loose-names is about upstream's forms; add --allow-legacy")
    certificates = []
    if config.tls is not None:
        certificates.append(_Certificate("tls_", config.tls, tls_cert, tls_key))
    if config.http is not None and config.http.tls is not None:
        context = config.http.tls
        certificates.append(_Certificate("http_tls_", context, http_tls_cert, http_tls_key))
    is_locked = config.login is not None and not jwks
    remarks = _remarks(config, certificates, is_locked=is_locked, processes=processes)
    config = attrs.evolve(config, remarks=remarks)
    http = [] if config.http is None else places_from(config.http.listen, processes, "--http")
    check = partial(_check, config, certificates, processes)
    start = partial(failure.run, check=check, listen={"--listen": [config.listen], "--http": http})
    member: Member | None = click.get_current_context().obj  # what the parent has decided
    if processes > 1 and member is None:
        return start(_several(config, http or [""] * processes, check))
    shared = ""
    if member is not None:
        config, shared = member.configure(config), member.listen
    opened = partial(_open, config, trace, certificates, shared)
    work = partial(lifetime.serve, opened, partial(_announce, config))
    with log.shared_fields(**({"node_name": config.node_name} if config.node_name else {})):
        return start(work if member is None else partial(lifetime.until_parent_ends, work))


def _several(
    config: NodeConfig, http: Sequence[str], check: Callable[[], None]
) -> Callable[[], Awaitable[group.ExitCode]]:
    """Return the work that runs several processes, each a node of the domain.

    Args:
        config: The configuration of all processes.
        http: Address of the HTTP service of each; empty: no HTTP.
        check: Checks the needs of the processes.
    """
    from actors.commands.node.processes import open_processes  # noqa: PLC0415 - imports the engine

    def announce(ready: Mapping[str, JsonObject]) -> None:
        first, *_ = ready.values()
        urls = {field: value for field, value in first.items() if field.endswith("url")}
        own = [
            {"node_name": name, **{field: line[field] for field in _OWN}}
            for name, line in ready.items()
        ]
        failure.say_ready("node", config.domain, **urls, processes=own)
        _remark(config)

    @asynccontextmanager
    async def open_traces() -> AsyncIterator[Mapping[str, JsonObject]]:
        # Check once; otherwise each process would report the error.
        await trio.to_thread.run_sync(check, abandon_on_cancel=True)
        async with open_processes(config, http) as ready:
            yield ready

    return partial(lifetime.serve, open_traces, announce)


def _check(config: NodeConfig, certificates: Sequence[_Certificate], processes: int) -> None:
    """Check the files and addresses that the node opens at its start.

    Raises:
        LocalServerError: Processes need a NATS server, and there is none.
        CommandError: A certificate is not valid now.
        PolicyFileError: A policy file cannot be used.
        RegistryFileError: The file of the domain registry cannot be used.
        StateFileError: The file of the sessions cannot be used.
        OpenMetricsError: Any client could read the metrics.
    """
    from actors.http.service import check_readers  # noqa: PLC0415 - slow to import

    for why in _validity_errors(certificates):
        raise group.CommandError(f"{why}; renew it")
    if config.policies is not None:
        read_policies(config.policies.files)
    if config.registry is not None and (why := database.flaw_of(config.registry, RECORDS)):
        raise errors.RegistryFileError(config.registry, why)
    if config.state_file is not None and (why := database.flaw_of(config.state_file, STATE)):
        raise errors.StateFileError(config.state_file, why)
    if config.http is not None:
        check_readers(config.http, config.http.listen)
    if processes > 1:
        from transports.engine.server import find_program  # noqa: PLC0415 - for several only

        find_program()


@asynccontextmanager
async def _open(
    config: NodeConfig, trace: OpenTracer, certificates: Sequence[_Certificate], shared: str
) -> AsyncIterator[app.Node]:
    offset = ids.clock_offset()  # the clock of Trio has started only now
    timed = attrs.evolve(config, clock_offset=offset, foreign=config.foreign.with_clock(offset))
    files = [each.reload for each in certificates]
    async with (
        trace(config.process_name) as tracer,
        system.open_system_network(config.client_tls, shared) as network,
        app.open_node(timed, network, tracer) as node,
        reloading(
            [*files, node.reload_policies] if node.has_policies else files,
            [each.reloadable for each in certificates],
        ),
    ):
        yield node


def _announce(config: NodeConfig, node: app.Node) -> None:
    failure.say_ready("node", config.domain, **{field: getattr(node, field) for field in _URLS})
    _remark(config)


def _remark(config: NodeConfig) -> None:
    for remark in config.remarks:
        group.echo(f"protofly: {remark}", err=True)
