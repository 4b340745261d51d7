"""What the HTTP listener of a node is told."""

from typing import final

import attrs

__all__ = ["HttpConfig"]


@final
@attrs.frozen
class HttpConfig:
    """Where a node serves HTTP, and who may read its metrics.

    Attributes:
        listen: `host:port`; port 0 picks a free one.
        token: What a reader of metrics has to show; None: nothing, on this machine only.
    """

    listen: str
    token: bytes | None = attrs.field(default=None, repr=False)
