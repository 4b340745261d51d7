"""The group commit of the domain registry: the only actor that writes to its file.

What the registry has taken in while one commit ran is the next one, so the cost of a
commit is shared by all who wait. A file that cannot be written is no crash: whoever
asked hears of it, and may ask to have everything written anew later (R13).
"""

from typing import TypeAlias, assert_never, final

import attrs
import trio
from typing_extensions import override

from actors.kit.counting.counters import Counters
from actors.kit.counting.tally import Timing
from actors.kit.supervision.actor import Actor, Reply
from actors.node.errors import RegistryFileError
from actors.node.registry.record_file import Change, RecordFile

__all__ = ["Commit", "RecordWriter", "Recover", "Write", "Written"]

Written: TypeAlias = RegistryFileError | None
"""What a write came to: an error, and nothing of it is durable; or None, and all is."""


@final
@attrs.frozen
class Commit:
    """Make changes durable."""

    changes: tuple[Change, ...]
    done: Reply[Written]


@final
@attrs.frozen
class Recover:
    """Begin with the file anew: write all that is durable so far."""

    done: Reply[Written]


Write: TypeAlias = Commit | Recover


@final
class RecordWriter(Actor[Write]):
    """Writes what it is asked to, one after the other."""

    def __init__(self, file: RecordFile, counters: Counters) -> None:
        self._file = file
        self._counters = counters

    @override
    async def handle(self, message: Write) -> None:
        error: Written = None
        begun = trio.current_time()
        try:
            match message:
                case Commit(changes):
                    await self._file.commit(changes)
                case Recover():
                    await self._file.recover()
                case _:
                    assert_never(message)
        except RegistryFileError as exc:
            error = exc
        self._counters.took(Timing.COMMIT, trio.current_time() - begun)
        message.done.send(error)
