"""Bytes as text in base64url without padding (RFC 7515 section 2), one spelling for each value."""

from base64 import urlsafe_b64decode, urlsafe_b64encode


def write_base64url(raw: bytes) -> str:
    """Return bytes as text."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def read_base64url(text: str) -> bytes:
    """Return the bytes of a text.

    Args:
        text: What `write_base64url` returned.

    Raises:
        ValueError: It is anything else, even if other decoders read it.
    """
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if write_base64url(raw) != text:
        raise ValueError("it is no base64url")
    return raw
