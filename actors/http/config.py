"""Configuration of the HTTP service of a node or runtime, and errors the operator must correct."""

import ssl
from pathlib import Path
from typing import final

import attrs

from actors.kit.arguments import as_path
from specs.errors import PlaceError, ProtoflyError


@final
@attrs.frozen
class ShownCatalogue:
    """Catalogue of a domain that the HTTP service publishes from a directory."""

    domain: str
    directory: Path = attrs.field(converter=as_path)


@final
@attrs.frozen
class HttpConfig:
    """Configuration of the HTTP service of a node or a runtime.

    Attributes:
        listen: `host:port`; port 0 picks a free one.
        token: Bearer token for readers of metrics; None: readers on this machine only.
        tls: Context that encrypts connections; None: no TLS.
        rest: Whether runtimes may have sessions over HTTP; nodes only.
        catalogue: Catalogue at /.well-known/; None: no catalogue. Nodes only.
    """

    listen: str
    token: bytes | None = attrs.field(default=None, repr=False)
    rest: bool = False
    catalogue: ShownCatalogue | None = None
    tls: ssl.SSLContext | None = None


@final
class OpenMetricsError(ProtoflyError, public=True):
    """The configuration would let other machines read the metrics without a token."""

    def __init__(self, where: str) -> None:
        super().__init__(f"metrics at {where} can be read from other machines without a token")
        self.where = where


@final
class HttpPlaceError(PlaceError, public=True):
    """The HTTP service cannot listen at the configured address."""

    summary = "cannot serve health and metrics on {}"
