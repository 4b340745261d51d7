"""The option of who decides that an object is observed."""

from typing import final

import attrs
import click
from typing_extensions import override

from actors.cli.topic import Topic, topic_options
from actors.node.config import NodeConfig
from fsm.registry.node_rights import Observation

__all__ = ["ObservationOptions", "observation_options"]


@final
@attrs.frozen
class ObservationOptions(Topic):
    """Who is asked before an observer is delivered anything."""

    observation: str

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        return attrs.evolve(config, observation=Observation(self.observation))


observation_options = topic_options(
    ObservationOptions,
    click.option(
        "--observation",
        type=click.Choice([each.value for each in Observation]),
        default=Observation.OWNER.value,
        show_default=True,
        help="Deliver changes of an object with its owner's consent, or to all subscribers.",
    ),
)
"""The option of observation."""
