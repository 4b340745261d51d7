"""`python -m actors node`: the message node of a domain."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import click
import trio

from actors.cli.command_error import CommandError
from actors.cli.config_file import config_option
from actors.cli.echo import echo
from actors.cli.failure import Needs, run
from actors.cli.lifetime import serve, until_parent_ends
from actors.cli.options import (
    OpenTracer,
    check_domain,
    check_place,
    log_option,
    monitor_option,
    places_from,
    profile_option,
    trace_options,
)
from actors.cli.output import say_ready
from actors.cli.reloading import reloading
from actors.cli.topic import Topic
from actors.commands.node.engine import EngineOptions, engine_options
from actors.commands.node.foreign import (
    catalogue_options,
    connector_options,
    foreign_options,
    observation_options,
)
from actors.commands.node.limits import http_options, limit_options
from actors.commands.node.login import login_options
from actors.commands.node.policy import policy_options, rereads
from actors.commands.node.tls import Certificate, TlsOptions, tls_options
from actors.kit.database import flaw_of
from actors.kit.ids import clock_offset, fresh_ids
from actors.kit.log import shared_fields
from actors.node.app import Node, open_node
from actors.node.config import NodeConfig
from actors.node.errors import RegistryFileError, StateFileError
from actors.node.registry.record_file import FORM as RECORDS
from actors.node.state.file import FORM as STATE
from actors.policy.store import read_policies
from fsm.registry.node_rights import Names
from specs.jsonvalue import JsonObject
from transports.system import open_system_network

if TYPE_CHECKING:
    from actors.commands.node.processes import Member


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


_OWN: Final = ("pid", "http_url", "rest_url")
"""Fields of the ready line that each of several processes has for itself."""


@click.command("node")
@click.option("--domain", required=True, callback=check_domain, help="The domain of the node.")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    show_default=True,
    callback=check_place,
    help="Address for connections of stubs; port 0 picks a free one.",
)
@click.option("--allow-legacy", is_flag=True, help="Serve the wire forms of upstream's stubs.")
@click.option(
    "--loose-names",
    is_flag=True,
    help="Let runtimes in upstream's forms have names with slashes, and share component addresses.",
)
@click.option(
    "--state",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of sessions and used login tokens: after a restart runtimes come back by themselves "
    "[default: FILE-state beside --registry FILE, else in memory].",
)
@connector_options
@login_options
@policy_options
@observation_options
@foreign_options
@limit_options
@http_options
@tls_options
@catalogue_options
@engine_options
@trace_options
@monitor_option
@config_option
@profile_option(PROFILES)
@log_option
def command(  # noqa: PLR0913 - one for each option
    *,
    domain: str,
    listen: str,
    allow_legacy: bool,
    loose_names: bool,
    profile: str | None,
    state: Path | None,
    monitor: bool,
    topics: tuple[Topic, ...],
    trace: OpenTracer,
) -> int:
    """Run the message node of a domain until SIGTERM or Ctrl-C.

    Prints one line of JSON when it is ready, with the addresses it listens on.
    """
    del profile  # it was read before the others
    if loose_names and not allow_legacy:
        raise CommandError("--loose-names is about upstream's forms; add --allow-legacy")
    config = NodeConfig(
        domain=domain,
        listen=listen,
        allow_legacy=allow_legacy,
        names=Names.LOOSE if loose_names else Names.STRICT,
        state=state,
        ids=fresh_ids(),
        monitor=monitor,
    )
    for topic in topics:
        config = topic.applied(config)
    certificates = [
        one
        for topic in topics
        if isinstance(topic, TlsOptions)
        for one in topic.certificates(config)
    ]
    member = _member()
    count = max(one.processes for one in topics if isinstance(one, EngineOptions))
    http = [] if config.http is None else places_from(config.http.listen, count, "--http")
    needs = Needs(partial(_check, config, topics, count), {"--listen": [listen], "--http": http})
    if count > 1 and member is None:
        return _run_several(config, http or [""] * count, needs)
    shared = ""
    if member is not None:
        config, shared = member.applied(config), member.listen
    opened = partial(_open, config, trace, certificates, shared)
    work = partial(serve, opened, partial(_announce, config))
    with shared_fields(**({"node_name": config.node_name} if config.node_name else {})):
        return run(work if member is None else partial(until_parent_ends, work), needs=needs)


def _member() -> "Member | None":
    """Return what the parent of this process has decided; None: this is none of several."""
    ctx = click.get_current_context()
    if ctx.obj is None:
        return None
    from actors.commands.node.processes import Member  # noqa: PLC0415 - imports the engine

    return ctx.find_object(Member)


def _run_several(config: NodeConfig, http: Sequence[str], needs: Needs) -> int:
    """Run several processes, each a node of the domain.

    Args:
        config: The configuration of all of them.
        http: Address of the HTTP service of each; empty: it has none.
        needs: What they need.
    """
    from actors.commands.node.processes import open_processes  # noqa: PLC0415 - as above

    def announce(ready: Mapping[str, JsonObject]) -> None:
        first, *_ = ready.values()
        urls = {field: value for field, value in first.items() if field.endswith("url")}
        own = [
            {"node_name": name, **{field: one[field] for field in _OWN}}
            for name, one in ready.items()
        ]
        say_ready("node", config.domain, **urls, processes=own)
        _remark(config)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Mapping[str, JsonObject]]:
        # Or each of them would complain.
        await trio.to_thread.run_sync(needs.check, abandon_on_cancel=True)
        async with open_processes(config, http) as ready:
            yield ready

    return run(partial(serve, opened, announce), needs=needs)


def _check(config: NodeConfig, topics: Sequence[Topic], count: int) -> None:
    """Look at what the node opens at its start, as it does.

    Args:
        config: The configuration of the node.
        topics: Its options.
        count: How many processes it has.

    Raises:
        LocalServerError: Processes need a NATS server, and there is none.
        CommandError: A certificate is not good now.
        PolicyFileError: A policy file cannot be used.
        RegistryFileError: The file of the domain registry cannot be used.
        StateFileError: The file of the sessions cannot be used.
        OpenMetricsError: Every client could read the metrics.
    """
    from actors.http.service import check_readers  # noqa: PLC0415 - slow to import

    for topic in topics:
        if isinstance(topic, TlsOptions):
            topic.check_times()
    if config.policies is not None:
        read_policies(config.policies.files)
    if config.registry is not None and (why := flaw_of(config.registry, RECORDS)):
        raise RegistryFileError(config.registry, why)
    if config.state_file is not None and (why := flaw_of(config.state_file, STATE)):
        raise StateFileError(config.state_file, why)
    if config.http is not None:
        check_readers(config.http, config.http.listen)
    if count > 1:
        from transports.engine.server import find_program  # noqa: PLC0415 - for several only

        find_program()


def _timed(config: NodeConfig) -> NodeConfig:
    """Set the clocks of a node to the time of day; Trio's clock runs only now."""
    offset = clock_offset()
    return attrs.evolve(config, clock_offset=offset, foreign=config.foreign.timed(offset))


@asynccontextmanager
async def _open(
    config: NodeConfig, trace: OpenTracer, certificates: Sequence[Certificate], shared: str
) -> AsyncIterator[Node]:
    async with (
        trace(config.process_name) as tracer,
        open_system_network(config.client_tls, shared) as network,
        open_node(_timed(config), network, tracer) as node,
        reloading(tuple(rereads(node, certificates)), [one.takes for one in certificates]),
    ):
        yield node


def _announce(config: NodeConfig, node: Node) -> None:
    say_ready(
        "node",
        config.domain,
        url=node.url,
        legacy_url=node.legacy_url,
        session_url=node.session_url,
        http_url=node.http_url,
        rest_url=node.rest_url,
    )
    _remark(config)


def _remark(config: NodeConfig) -> None:
    for remark in config.remarks:
        echo(f"protofly: {remark}", err=True)
