"""Proof that a runtime holds its key, when it opens or re-opens a session (M-14, M-15, RFC 7800).

A node answers a request that shows a key by a challenge; the runtime asks again, and signs the
challenge, the domain, its own name, and the token that it shows. So a signature that was heard
elsewhere proves nothing: not on another link, not later, not for another runtime, at another
domain or for another token. One challenge of each link is kept, until it is used or the link
is gone.
"""

import hashlib


def signed_parts(domain: str, runtime: str, challenge: str, token: str | None) -> tuple[str, ...]:
    """Return the texts that a runtime signs; the purpose is the method of session control.

    Args:
        domain: Domain of the node.
        runtime: Address of the runtime.
        challenge: The challenge of the node.
        token: The token that is shown beside; None: there is none.
    """
    digest = "" if token is None else hashlib.sha256(token.encode()).hexdigest()
    return domain, runtime, challenge, digest


class Challenges:
    """The challenges of a node that were not answered yet, one for each link at most."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._given)

    def give(self, link: int, fresh: str) -> None:
        """Note the challenge that a link was given; an earlier one of the link is void.

        Args:
            link: Number of the link; never used twice in a node.
            fresh: The challenge; random, made by the host.
        """
        self._given[link] = fresh

    def use(self, link: int) -> str | None:
        """Return the challenge that a proof on this link must answer, and void it.

        Args:
            link: Number of the link.

        Returns:
            The challenge; None: none was given, or it was used.
        """
        return self._given.pop(link, None)

    def forget(self, link: int) -> None:
        """Note that a link is gone. Idempotent."""
        self._given.pop(link, None)
