"""`python -m actors runtime`: a hyperty runtime."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import click

from actors.commands.config_file import config_option
from actors.commands.entering import credentials_of, enter, token_option
from actors.commands.failure import run
from actors.commands.foreign import nodes_option, topology_option
from actors.commands.lifetime import serve
from actors.commands.loading import check_hyperties, load_hyperty
from actors.commands.option import (
    check_domain,
    check_kinds,
    check_name,
    log_option,
    node_option,
    trace_option,
)
from actors.commands.output import say_ready
from actors.commands.reach import check_node
from actors.commands.tracing import open_tracer
from actors.kit.ids import IdSource
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from actors.runtime.hyperty import Hyperty
from actors.runtime.stub import LOOPBACK
from fsm.cores.resolve import Topology
from specs import address
from transports.link import Kind
from transports.system import open_system_network

__all__ = ["command"]


@click.command("runtime")
@click.option("--domain", required=True, callback=check_domain, help="The domain it belongs to.")
@click.option("--name", required=True, callback=check_name, help="Its name within the domain.")
@node_option
@click.option(
    "--hyperty",
    metavar="NAME=module:Class",
    multiple=True,
    callback=check_hyperties,
    help="Deploy this hyperty; repeatable. Try echo=actors.hyperties:Echo.",
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
    help="Where links by websocket and tcp are listened for.",
)
@topology_option
@nodes_option
@token_option
@trace_option
@config_option
@log_option
def command(  # noqa: PLR0913 - one for each option
    *,
    domain: str,
    name: str,
    node: str,
    hyperty: dict[str, str],
    p2p: tuple[Kind, ...],
    p2p_host: str,
    topology: str,
    foreign: dict[str, str],
    token_file: Path | None,
    trace: Path | None,
) -> int:
    """Run a hyperty runtime until SIGTERM or Ctrl-C.

    Prints one line of JSON when it is ready, with the addresses of its hyperties.
    """
    classes = {name: load_hyperty(where) for name, where in hyperty.items()}
    config = RuntimeConfig(
        domain=domain,
        name=name,
        node=node,
        kinds=p2p,
        p2p_host=p2p_host,
        topology=Topology(topology),
        nodes=foreign,
        credentials=credentials_of(token_file),
        ids=IdSource(time.time_ns() // 1000),
    )
    service = partial(_open, config, classes, trace)
    return run(partial(serve, service, partial(_announce, config)))


@asynccontextmanager
async def _open(
    config: RuntimeConfig, classes: Mapping[str, type[Hyperty]], trace: Path | None
) -> AsyncIterator[dict[str, str]]:
    async with open_tracer(trace, config.name) as tracer, open_system_network() as network:
        await check_node(network, config.node)
        async with open_runtime(config, network, tracer) as runtime:
            await enter(runtime)
            yield {name: await runtime.deploy(name, made) for name, made in classes.items()}


def _announce(config: RuntimeConfig, hyperties: dict[str, str]) -> None:
    url = address.runtime(config.domain, config.name)
    say_ready("runtime", config.domain, url=url, hyperties=hyperties)
