"""Who gives way when two runtimes ask each other for a link at once (P2P-27, I-P20)."""

__all__ = ["own_request_wins"]


def own_request_wins(own_runtime: str, remote_runtime: str) -> bool:
    """Say whether the link that we requested survives the one the remote requested.

    The smaller requester runtime address wins, in byte order: both ends come to
    the same answer without a word.
    """
    return own_runtime.encode() < remote_runtime.encode()
