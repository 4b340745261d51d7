"""`python -m actors runtime`: a hyperty runtime."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import click

from actors.catalogue.places import Places
from actors.cli.config_file import config_option
from actors.cli.entering import credentials_of, enter, token_option
from actors.cli.failure import run
from actors.cli.lifetime import serve
from actors.cli.options import (
    check_domain,
    check_kinds,
    check_name,
    log_option,
    node_option,
    trace_option,
)
from actors.cli.output import open_tracer, say_ready
from actors.cli.reachability import check_host, check_node
from actors.commands.catalogues import (
    catalogue_access,
    catalogue_option,
    timed,
    trust_option,
)
from actors.commands.foreign import nodes_option, topology_option
from actors.commands.runtime.housing import Deploy, Housing, housed
from actors.commands.runtime.links import links_of, links_options
from actors.commands.runtime.loading import check_hyperties
from actors.kit.time_of_day import fresh_ids
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.store.runtime_store import open_shelf
from actors.runtime.stubs.stub import LOOPBACK
from fsm.p2p.link_policy import PeerWish
from fsm.registry.resolve.resolve import Topology
from specs.addresses import address
from transports.link import Kind
from transports.system import open_system_network

__all__ = ["command"]


@click.command("runtime")
@click.option("--domain", required=True, callback=check_domain, help="The domain of the runtime.")
@click.option(
    "--name", required=True, callback=check_name, help="The name of the runtime in its domain."
)
@node_option
@click.option(
    "--hyperty",
    metavar="NAME=module:Class",
    multiple=True,
    callback=check_hyperties,
    help="Deploy this hyperty; repeatable. Try echo=actors.hyperties:Echo.",
)
@click.option(
    "--sandbox",
    type=click.Choice([one.value for one in Housing]),
    default=Housing.NURSERY.value,
    show_default=True,
    help="Where hyperties run: in this process, or each in a sandbox process of its own.",
)
@click.option(
    "--p2p",
    metavar="KINDS",
    default="unix,tcp,websocket",
    show_default=True,
    callback=check_kinds,
    help="Transports of links to other runtimes, best first; none for no links.",
)
@click.option(
    "--p2p-host",
    metavar="HOST",
    default=LOOPBACK,
    show_default=True,
    help="Host on which links by websocket and tcp are accepted. A private address or a name "
    "is offered only to peers that --p2p-peer names.",
)
@links_options
@topology_option
@nodes_option
@catalogue_option
@trust_option
@token_option
@click.option(
    "--store",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that keeps stored data objects over the end of the process.",
)
@trace_option
@config_option
@log_option
def command(  # noqa: PLR0913 - one for each option
    *,
    domain: str,
    name: str,
    node: str,
    hyperty: dict[str, str],
    sandbox: str,
    p2p: tuple[Kind, ...],
    p2p_host: str,
    p2p_wish: str,
    p2p_peer: tuple[PeerWish, ...],
    p2p_wait: str,
    topology: str,
    foreign: dict[str, str],
    places: Places | None,
    trust: Path | None,
    token_file: Path | None,
    store: Path | None,
    trace: Path | None,
) -> int:
    """Run a hyperty runtime until SIGTERM or Ctrl-C.

    Prints one line of JSON when it is ready, with the addresses of its hyperties.
    """
    crew = housed(hyperty, Housing(sandbox))
    config = RuntimeConfig(
        domain=domain,
        name=name,
        node=node,
        kinds=p2p,
        p2p_host=p2p_host,
        links=links_of(p2p_wish, p2p_peer, p2p_wait),
        topology=Topology(topology),
        nodes=foreign,
        catalogues=catalogue_access(places, trust, f"{domain}.{name}"),
        credentials=credentials_of(token_file),
        store=store,
        ids=fresh_ids(),
    )
    service = partial(_open, config, crew, trace)
    return run(partial(serve, service, partial(_announce, config)))


@asynccontextmanager
async def _open(
    config: RuntimeConfig, crew: Mapping[str, Deploy], trace: Path | None
) -> AsyncIterator[dict[str, str]]:
    with open_shelf(config.store):
        # What is wrong with it is told before anything is dialled.
        pass
    async with open_system_network() as network:
        # A run that could not begin leaves no trace.
        await check_host(network, config.p2p_host, config.kinds)
        await check_node(network, config.node)
        async with (
            open_tracer(trace, config.name) as tracer,
            open_runtime(timed(config), network, tracer) as runtime,
        ):
            await enter(runtime)
            yield {name: await deploy(runtime, name) for name, deploy in crew.items()}


def _announce(config: RuntimeConfig, hyperties: dict[str, str]) -> None:
    url = address.runtime(config.domain, config.name)
    say_ready("runtime", config.domain, url=url, hyperties=hyperties)
