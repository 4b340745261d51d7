"""What a runtime wants of direct links to others, as its options say it."""

from typing import Final

import click

from actors.cli.options import Handler, check_domain
from fsm.p2p.link_policy import LinkWishes, P2pWait, P2pWish, PeerWish
from specs.addresses.address import RUNTIME_SCHEME, runtime_of, scheme_of
from specs.errors import BadUrlError

__all__ = ["links_of", "links_options"]

_BELOW: Final = "*."
_WISHES: Final = ", ".join(P2pWish)


def _check_peers(
    ctx: click.Context, option: click.Parameter, value: tuple[str, ...]
) -> tuple[PeerWish, ...]:
    """Return what is wanted of each peer; refuse what is no peer or no wish."""
    return tuple(_peer(ctx, option, one) for one in value)


def _peer(ctx: click.Context, option: click.Parameter, text: str) -> PeerWish:
    peer, _, wish = text.rpartition("=")
    if wish not in list(P2pWish):
        raise click.BadParameter(f"{text!r} is no PEER=WISH; a wish is one of {_WISHES}")
    if "://" not in peer:
        below = peer.removeprefix(_BELOW)
        domain = check_domain(ctx, option, below)
        return PeerWish(f"{peer[: len(peer) - len(below)]}{domain}", P2pWish(wish))
    try:
        is_runtime = scheme_of(peer) == RUNTIME_SCHEME and runtime_of(peer) == peer
    except BadUrlError as error:
        raise click.BadParameter(str(error)) from error
    if not is_runtime:
        raise click.BadParameter(f"{peer!r} is neither a domain nor the address of a runtime")
    return PeerWish(peer, P2pWish(wish))


def links_options(handler: Handler) -> Handler:
    """Add `--p2p-wish`, `--p2p-peer` and `--p2p-wait`."""
    wish = click.option(
        "--p2p-wish",
        type=click.Choice([one.value for one in P2pWish]),
        default=P2pWish.WHENEVER_POSSIBLE.value,
        show_default=True,
        help="When to open direct links to other runtimes.",
    )
    peers = click.option(
        "--p2p-peer",
        metavar="PEER=WISH",
        multiple=True,
        callback=_check_peers,
        help="The same for one DOMAIN, *.DOMAIN or runtime; repeatable, the first match counts.",
    )
    wait = click.option(
        "--p2p-wait",
        type=click.Choice([one.value for one in P2pWait]),
        default=P2pWait.OPPORTUNISTIC.value,
        show_default=True,
        help="While a link is set up, send by the node, or wait for the link for a time.",
    )
    return wish(peers(wait(handler)))


def links_of(wish: str, peers: tuple[PeerWish, ...], wait: str) -> LinkWishes:
    """Return the wishes that these options say."""
    return LinkWishes(P2pWish(wish), peers, P2pWait(wait))
