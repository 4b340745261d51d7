"""Bytes as base64url text without padding (RFC 7515 section 2); each has exactly one spelling."""

from base64 import urlsafe_b64decode, urlsafe_b64encode


def write_base64url(raw: bytes) -> str:
    """Return bytes as base64url text without padding."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def read_base64url(text: str) -> bytes:
    """Return the bytes that a base64url text without padding stands for.

    Args:
        text: A text as `write_base64url` returns.

    Raises:
        ValueError: `write_base64url` never returns this text, even if other decoders accept it.
    """
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if write_base64url(raw) != text:
        raise ValueError("it is no base64url")
    return raw
