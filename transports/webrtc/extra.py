"""The extra `webrtc`, without which there are no data channels."""

from importlib.util import find_spec
from typing import Final

NO_WEBRTC: Final = "links by webrtc need the extra 'webrtc', which is not installed"
"""The reason in the error when no data channel can be opened, as `aiortc` is not installed."""


def is_webrtc_installed() -> bool:
    """Return whether the extra `webrtc` is installed."""
    return find_spec("aiortc") is not None
