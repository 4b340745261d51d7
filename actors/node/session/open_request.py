"""A wish for a session, as it is looked into (M-14, M-15)."""

from typing import final

import attrs

from actors.node.links.port import Port
from specs.addresses.address import RUNTIME_SCHEME, is_node, parse
from specs.bodies.body import SessionControl
from specs.errors import BadMessageError, BadUrlError
from specs.message import Message

__all__ = ["Wish", "wish_of"]


@final
@attrs.frozen
class Wish:
    """A link wants the session of a runtime, or of another domain's node.

    Attributes:
        message: What it said.
        port: The link.
        runtime: Whose session; the node of a domain is known by its own address.
        token: What it brought, a session's token or credentials; None: nothing.
    """

    message: Message
    port: Port
    runtime: str
    token: str | None = attrs.field(default=None, repr=False)


def wish_of(message: Message, asked: SessionControl, port: Port) -> Wish:
    """Read whose session is asked for.

    Raises:
        BadMessageError: The address of no runtime and no node.
    """
    text = asked.params.runtime_url
    if text is None:
        raise BadMessageError("params.runtimeURL is missing")
    try:
        url = parse(text)
    except BadUrlError as exc:
        raise BadMessageError(f"params.runtimeURL {exc}") from exc
    is_runtime = url.scheme == RUNTIME_SCHEME and len(url.path) == 1
    if not is_runtime and not is_node(url.text):
        raise BadMessageError(f"params.runtimeURL is no {RUNTIME_SCHEME}://<domain>/<name>")
    return Wish(message, port, url.text, asked.params.token)
