"""Other domains and where their nodes are, as options name them."""

import click

from actors.cli.options import check_domain, check_node
from fsm.registry.resolve.resolve import Topology

__all__ = ["check_foreign", "nodes_option", "topology_option"]


def check_foreign(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Return URLs by domain; refuse what is no `DOMAIN=URL`."""
    urls: dict[str, str] = {}
    for name, url in map(_pair, values):
        domain = check_domain(ctx, param, name)
        urls[domain] = check_node(ctx, param, url)
    return urls


def _pair(value: str) -> tuple[str, str]:
    domain, separator, url = value.partition("=")
    if not separator:
        raise click.BadParameter(
            f"{value!r} is no DOMAIN=URL such as b.example=ws://host:4123/link"
        )
    return domain, url


topology_option = click.option(
    "--topology",
    type=click.Choice([one.value for one in Topology]),
    default=Topology.TRIANGLE.value,
    show_default=True,
    help="Send messages for other domains to their node (triangle), or to the own one.",
)
"""The option `--topology`."""

nodes_option = click.option(
    "--foreign",
    metavar="DOMAIN=URL",
    multiple=True,
    callback=check_foreign,
    help="URL of another domain's node, for the triangle; repeatable.",
)
"""The option `--foreign` of what dials other domains' nodes itself."""
