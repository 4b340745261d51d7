"""`python -m actors node`: the message node of a domain."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import click

from actors.cli.config_file import config_option
from actors.cli.failure import run
from actors.cli.lifetime import serve
from actors.cli.options import (
    OpenTracer,
    check_domain,
    check_place,
    log_option,
    monitor_option,
    trace_options,
)
from actors.cli.output import say_ready
from actors.cli.topic import Topic
from actors.commands.node.foreign import (
    catalogue_options,
    connector_options,
    foreign_options,
    observation_options,
)
from actors.commands.node.limits import http_options, limit_options
from actors.commands.node.login import login_options
from actors.commands.node.policy import policy_options, reloading
from actors.commands.node.tls import TlsOptions, tls_options
from actors.kit.ids import clock_offset, fresh_ids
from actors.node.app import Node, open_node
from actors.node.config import NodeConfig
from transports.system import open_system_network

__all__ = ["command"]


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
@trace_options
@monitor_option
@config_option
@log_option
def command(  # noqa: PLR0913 - one for each option
    *,
    domain: str,
    listen: str,
    allow_legacy: bool,
    state: Path | None,
    monitor: bool,
    topics: tuple[Topic, ...],
    trace: OpenTracer,
) -> int:
    """Run the message node of a domain until SIGTERM or Ctrl-C.

    Prints one line of JSON when it is ready, with the addresses it listens on.
    """
    config = NodeConfig(
        domain=domain,
        listen=listen,
        allow_legacy=allow_legacy,
        state=state,
        ids=fresh_ids(),
        monitor=monitor,
    )
    for topic in topics:
        config = topic.applied(config)
    rereads = [
        one for topic in topics if isinstance(topic, TlsOptions) for one in topic.rereads(config)
    ]
    return run(partial(serve, partial(_open, config, trace, rereads), partial(_announce, config)))


@asynccontextmanager
async def _open(
    config: NodeConfig, trace: OpenTracer, rereads: Sequence[Callable[[], None]]
) -> AsyncIterator[Node]:
    offset = clock_offset()
    async with (
        trace(f"node.{config.domain}") as tracer,
        open_system_network(config.client_tls) as network,
        open_node(attrs.evolve(config, clock_offset=offset), network, tracer) as node,
        reloading(node, rereads),
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
    for remark in config.remarks:
        click.echo(f"protofly: {remark}", err=True)
