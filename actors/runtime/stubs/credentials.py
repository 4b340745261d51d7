"""Credentials: the token with which a runtime logs in when it opens a session at a node.

A login token opens one session, so a stub requests a token for each session. The
token of the session itself, with which it is resumed, is a different one.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol, final

import attrs
import trio
from typing_extensions import override

from actors.kit.arguments import PathInput, as_path, type_checked
from specs.errors import ProtoflyError
from specs.jsonvalue import Json
from specs.limits.node import TOKEN_CHARS
from specs.reply_code import Code


@final
class SessionError(ProtoflyError, public=True):
    """The node of the domain gives a runtime no session.

    Attributes:
        code: Reply code of the node; or of this runtime, such as 503 if the node cannot be reached.
        reason: Reason in the answer; may be empty.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the node gives no session: {reason or code}")
        self.code = code
        self.reason = reason


@final
class ReleaseError(ProtoflyError, public=True):
    """The node does not give back a name of a runtime.

    Attributes:
        code: Reply code: 404 if it is no name of the user, 403 if nobody has logged in.
    """

    def __init__(self, runtime: str, code: int, reason: str) -> None:
        super().__init__(f"the node keeps the name {runtime}: {reason or code}")
        self.code = code


@final
class CredentialsError(ProtoflyError, public=True):
    """No login token is available: wait, or let the operator of the runtime act.

    Args:
        reason: Half a sentence without secrets.
        code: 401 if another attempt does not help, such as after a refusal of the client's
            secret; 503 if it may help.
    """

    def __init__(self, reason: str, code: Code = Code.UNAVAILABLE) -> None:
        super().__init__(f"no login token: {reason}")
        self.reason = reason
        self.code = code


class Credentials(Protocol):
    """The source of the login tokens of a runtime."""

    async def token(self, audience: str) -> str:
        """Return a token for a login; called whenever a session needs one.

        Args:
            audience: Domain whose node gets the token.

        If cancelled, a token may have been made that nobody uses. The runtime cancels it after
        `TOKEN_TIMEOUT` seconds.

        Returns:
            The token; an empty text to open the session without one.

        Raises:
            CredentialsError: No token is available at the moment.
        """
        ...


@final
@attrs.frozen(field_transformer=type_checked)
class GivenToken(Credentials):
    """A token given by the program; where the node accepts each token once, for one session."""

    _token: str = attrs.field(repr=False)

    @override
    async def token(self, audience: str) -> str:
        await trio.lowlevel.checkpoint()
        return self._token


NO_CREDENTIALS: Final[Credentials] = GivenToken("")
"""Credentials for nodes without login."""


def token_credentials(token: str | None) -> Credentials:
    """Return credentials that have one token; None: credentials without token."""
    return NO_CREDENTIALS if token is None else GivenToken(token)


@final
class TokenFile(Credentials):
    """A file whose token another program renews; it is read each time a session opens."""

    def __init__(self, path: PathInput) -> None:
        self._path = as_path(path, "the token file")

    @override
    async def token(self, audience: str) -> str:
        return await trio.to_thread.run_sync(self.read, abandon_on_cancel=True)

    def read(self) -> str:
        """Read the file; blocks.

        Raises:
            CredentialsError: It cannot be read, or contains no token.
        """
        return read_secret(self._path, "token")


def read_secret(path: Path, kind: str) -> str:
    """Return the one word in a file; blocks.

    Args:
        path: The file.
        kind: Kind of the secret, for errors.

    Raises:
        CredentialsError: The file cannot be read, or has no such word.
    """
    try:
        with path.open("rb") as file:
            text = file.read(TOKEN_CHARS + 2).decode("ascii").strip()
    except OSError as exc:
        why = exc.strerror or "it cannot be read"
        raise CredentialsError(f"cannot use the {kind} file {path}: {why}") from exc
    except UnicodeDecodeError as exc:
        raise CredentialsError(f"cannot use the {kind} file {path}: it holds no {kind}") from exc
    if not is_word(text):
        why = excess(text) or f"it holds no {kind}"
        raise CredentialsError(f"cannot use the {kind} file {path}: {why}")
    return text


def without(why: str, secrets: Iterable[Json]) -> str:
    """Return a provider's reason, or a replacement text if the reason quotes a secret.

    Args:
        why: The reason.
        secrets: The secrets: all texts, also within objects and lists.
    """
    return "it quotes a secret" if any(_quotes(why, secret) for secret in secrets) else why


def _quotes(why: str, secret: Json) -> bool:
    match secret:
        case str():
            return len(secret) >= _SHORTEST and secret in why
        case dict():
            return any(_quotes(why, each) for each in secret.values())
        case list():
            return any(_quotes(why, each) for each in secret)
        case _:
            return False


_SHORTEST: Final = 4
"""Minimum number of characters of a text that is treated as a secret."""

_WORD: Final = re.compile(r"[!-~]+")


def is_word(text: str) -> bool:
    """Return whether a text can be a token: one word of visible characters, not too long."""
    return 0 < len(text) <= TOKEN_CHARS and _WORD.fullmatch(text) is not None


def excess(text: object) -> str:
    """Return half a sentence that says that a text is too long for a token, or an empty text."""
    is_long = isinstance(text, str) and len(text) > TOKEN_CHARS
    return f"it is longer than {TOKEN_CHARS} characters" if is_long else ""
