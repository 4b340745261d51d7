"""The configuration of an HTTP service."""

import ssl
from pathlib import Path
from typing import final

import attrs

from actors.kit.arguments import as_path

__all__ = ["HttpConfig", "ShownCatalogue"]


@final
@attrs.frozen
class ShownCatalogue:
    """A catalogue that is served."""

    domain: str
    directory: Path = attrs.field(converter=as_path)


@final
@attrs.frozen
class HttpConfig:
    """The HTTP service of a node or a runtime.

    Attributes:
        listen: `host:port`; port 0 picks a free one.
        token: What a reader of metrics has to show; None: nothing, on this machine only.
        tls: What connections are encrypted by; None: they are not.
        rest: Whether runtimes may have their sessions over it; of a node only.
        catalogue: What is served at /.well-known/; None: nothing. Of a node only.
    """

    listen: str
    token: bytes | None = attrs.field(default=None, repr=False)
    rest: bool = False
    catalogue: ShownCatalogue | None = None
    tls: ssl.SSLContext | None = None
