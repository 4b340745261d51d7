"""Options of the node's policies, and reading them again at SIGHUP."""

import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, tzinfo
from pathlib import Path
from typing import final
from zoneinfo import ZoneInfo

import attrs
import click
import trio
from typing_extensions import override

from actors.cli.topic import Topic, topic_options
from actors.kit.log import get_logger
from actors.node.app import Node
from actors.node.config import NodeConfig, PolicyConfig
from fsm.policy.terms import Algorithm, Result
from transports.tls import TlsFileError

__all__ = ["check_zone", "policy_options", "reloading"]

_log = get_logger("actors.node")

DEFAULTS = (str(Result.PERMIT), str(Result.DENY))


@final
@attrs.frozen
class PolicyOptions(Topic):
    """The policies by which messages are judged."""

    policy: tuple[Path, ...]
    policy_default: str
    policy_combining: str
    policy_zone: tzinfo

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        # Without a file, too: administrators may add policies, and the default may be to deny.
        policies = PolicyConfig(
            files=self.policy,
            combining=Algorithm(self.policy_combining),
            default=Result(self.policy_default),
            zone=self.policy_zone,
        )
        return attrs.evolve(config, policies=policies)


def check_zone(_: click.Context, __: click.Parameter, value: str) -> tzinfo:
    """Return a time zone; refuse what is none."""
    if value == "UTC":
        return UTC
    try:
        return ZoneInfo(value)
    except (KeyError, ValueError, OSError) as exc:
        raise click.BadParameter(f"{value!r} is no time zone such as Europe/Berlin") from exc


policy_options = topic_options(
    PolicyOptions,
    click.option(
        "--policy",
        metavar="FILE",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Judge messages by this policy file, or by all *.toml of a folder; repeatable.",
    ),
    click.option(
        "--policy-default",
        type=click.Choice(DEFAULTS),
        default=DEFAULTS[0],
        show_default=True,
        help="Decision about messages to which no policy applies.",
    ),
    click.option(
        "--policy-combining",
        type=click.Choice([str(one) for one in Algorithm]),
        default=str(Algorithm.DENY_OVERRIDES),
        show_default=True,
        help="How the results of several policy files combine.",
    ),
    click.option(
        "--policy-zone",
        metavar="ZONE",
        default="UTC",
        show_default=True,
        callback=check_zone,
        help="Time zone of the times in policies, such as Europe/Berlin.",
    ),
)
"""The options of the policies."""


@asynccontextmanager
async def reloading(node: Node, rereads: Sequence[Callable[[], None]]) -> AsyncIterator[None]:
    """Read the policy files and certificates again at each SIGHUP, while the context is open.

    The log has the outcome. A node with neither leaves the signal alone.

    Args:
        node: The node.
        rereads: What reads certificates again.
    """
    if not node.has_policies and not rereads:
        yield
        return
    with trio.open_signal_receiver(signal.SIGHUP) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_reload, node, rereads, signals)
            yield
            nursery.cancel_scope.cancel()


async def _reload(
    node: Node, rereads: Sequence[Callable[[], None]], signals: AsyncIterator[int]
) -> None:
    async for _ in signals:
        for reread in rereads:
            try:
                reread()
            except TlsFileError as exc:
                _log.error("certificates are not read again", reason=str(exc))
            else:
                _log.info("certificates were read again")
        if node.has_policies:
            await node.reload_policies()
