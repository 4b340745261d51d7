"""The one fact by which both ends settle who gives way (P2P-27, I-P20)."""

__all__ = ["own_is_smaller"]


def own_is_smaller(own_runtime: str, remote_runtime: str) -> bool:
    """Say whether our runtime's address is the smaller one, in byte order.

    When two runtimes ask each other for a link at once, both ends see the same
    without a word; what follows from it is said by the tables' guards.
    """
    return own_runtime.encode() < remote_runtime.encode()
