"""URLs without TLS to other machines, which are dialled only on demand (SEC-13)."""

from collections.abc import Iterable
from typing import final

from actors.kit.log import get_logger
from specs.errors import ProtoflyError
from transports.link import Network
from transports.urls import is_plain

_log = get_logger("actors.kit")


@final
class PlainUrlError(ProtoflyError, ValueError, public=True):
    """A URL leads to another machine without TLS.

    Attributes:
        url: The URL.
        fault: What is wrong, as the beginning of a sentence that ends with advice.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.fault = f"{url} is dialled without TLS, so others can read and alter messages"
        super().__init__(f"{self.fault}; dial wss:, or set insecure=True")


def check_plain(urls: Iterable[str], network: Network | None = None, *, insecure: bool) -> None:
    """Refuse URLs that the operating system would dial on other machines without TLS.

    Args:
        urls: What is dialled.
        network: What dials; None: the network of the operating system. Others are not judged, as
            their hosts are no machines.
        insecure: Whether that is wanted; then a warning is logged.

    Raises:
        PlainUrlError: It is not.
    """
    if network is not None and not network.is_system:
        return
    for url in filter(is_plain, urls):
        if not insecure:
            raise PlainUrlError(url)
        _log.warning("a node is dialled without TLS", url=url)
