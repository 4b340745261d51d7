"""Options of the node that belong together: one file, one frozen object, one decorator each.

A topic `x` lives in `actors/commands/node/x.py`: a frozen attrs class whose fields are named
like the options, whose `applied` says what they mean for the node, and
`x_options = topic_options(X, click.option(...), ...)`, which stands over the node's command.
"""

from abc import ABC, abstractmethod
from functools import wraps

import attrs

from actors.cli.options import Handler, Option
from actors.node.config import NodeConfig


@attrs.frozen
class Topic(ABC):
    """The options of one topic of a node."""

    @abstractmethod
    def applied(self, config: NodeConfig) -> NodeConfig:
        """Return how the node is to be with these options.

        Raises:
            CommandError: The options contradict each other, or a file they name is wrong.
        """


def topics() -> list[type[Topic]]:
    """Return every topic there is, of the modules that were imported."""
    # What attrs made the slotted classes from may still be there; it has no fields of its own.
    return [kind for kind in Topic.__subclasses__() if "__attrs_attrs__" in vars(kind)]


def topic_options(kind: type[Topic], *options: Option) -> Option:
    """Give a command the options of a topic; it gets `topics`, a tuple in order of decorators.

    Args:
        kind: A frozen attrs class; each field has the name of one option's parameter.
        options: In the order of `--help`.
    """
    names = [field.name for field in attrs.fields(kind)]

    def decorate(command: Handler) -> Handler:
        @wraps(command)
        def gathered(*, topics: tuple[Topic, ...] = (), **values: object) -> int:
            own = {name: values.pop(name) for name in names}
            return command(topics=(*topics, kind(**own)), **values)

        made: Handler = gathered
        for option in reversed(options):
            made = option(made)
        return made

    return decorate
