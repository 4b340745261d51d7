"""Bytes as text in base64url without padding (RFC 7515 section 2), with one spelling each."""

from base64 import urlsafe_b64decode, urlsafe_b64encode


def write_base64url(raw: bytes) -> str:
    """Return bytes as text."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def read_base64url(text: str) -> bytes:
    """Return the bytes of a text.

    Args:
        text: A text as `write_base64url` returns.

    Raises:
        ValueError: The text is another spelling, even if other decoders accept it.
    """
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if write_base64url(raw) != text:
        raise ValueError("it is no base64url")
    return raw
