"""What the HTTP listener of a node is told."""

from pathlib import Path
from typing import final

import attrs

__all__ = ["HttpConfig", "ShownCatalogue"]


@final
@attrs.frozen
class ShownCatalogue:
    """A catalogue that is served.

    Attributes:
        domain: Whose it is.
        directory: What holds it.
    """

    domain: str
    directory: Path


@final
@attrs.frozen
class HttpConfig:
    """Where a node serves HTTP, and who may read its metrics.

    Attributes:
        listen: `host:port`; port 0 picks a free one.
        token: What a reader of metrics has to show; None: nothing, on this machine only.
        rest: Whether runtimes may have their sessions over it.
        catalogue: What is served at /.well-known/; None: nothing.
    """

    listen: str
    token: bytes | None = attrs.field(default=None, repr=False)
    rest: bool = False
    catalogue: ShownCatalogue | None = None
