"""Options of the node's policies, and reading them again at SIGHUP."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import final

import attrs
import trio
from typing_extensions import override

from actors.cli.policies import POLICY_OPTIONS, policies_of
from actors.cli.topic import Topic, topic_options
from actors.commands.node.tls import Certificate
from actors.kit.log import get_logger
from actors.node.app import Node
from actors.node.config import NodeConfig
from transports.tls import TlsFileError

_log = get_logger("actors.node")


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
        policies = policies_of(
            self.policy, self.policy_default, self.policy_combining, self.policy_zone
        )
        return attrs.evolve(config, policies=policies)


policy_options = topic_options(PolicyOptions, *POLICY_OPTIONS)
"""The options of the policies."""


def rereads(
    node: Node, certificates: Sequence[Certificate]
) -> Iterator[Callable[[], Awaitable[object]]]:
    """Return what reads the files of a node again: its certificates, then its policies.

    Args:
        node: The node.
        certificates: The certificates of its listeners.
    """
    for one in certificates:
        yield partial(_renew, one)
    if node.has_policies:
        yield node.reload_policies


async def _renew(certificate: Certificate) -> None:
    try:
        certificate.reread()
    except TlsFileError as exc:
        _log.error("certificates are not read again", reason=str(exc))
    else:
        _log.info("certificates were read again")
    await trio.lowlevel.checkpoint()
