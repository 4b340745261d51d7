"""Sources of login tokens: a command, and the token endpoint of an identity provider.

The endpoint is asked by a grant of OAuth 2.0 (RFC 6749): client credentials, or a refresh token.
"""

import os
import ssl
from base64 import b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final, final
from urllib.parse import quote_plus, urlencode

import attrs
import trio
from typing_extensions import override

from actors.kit.arguments import PathInput, as_path_or_none, check_text, check_texts, type_checked
from actors.kit.http_client import HttpAnswer, HttpClient, HttpError, HttpUrlError, ServerUrl
from actors.kit.log import get_logger
from actors.runtime.stubs.credentials import (
    Credentials,
    CredentialsError,
    excess,
    is_word,
    read_secret,
    without,
)
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import TOKEN_ANSWER_BYTES, TOKEN_CHARS
from specs.limits.protocol import GOODBYE_TIMEOUT
from specs.reply_code import Code
from transports.urls import is_plain

_log = get_logger("actors.runtime")

_AUDIENCE: Final = "PROTOFLY_AUDIENCE"
"""Variable that tells a command for which domain the token is."""


@final
class TokenCommand(Credentials):
    """A command whose first line on standard output is a token; run at each login.

    Its environment names the domain as `PROTOFLY_AUDIENCE`. It has no standard input; what it
    writes to standard error goes to that of the runtime.

    Args:
        words: The program and its arguments; no shell reads them.

    Raises:
        TypeError: It is one text instead of several, or one of them is none.
        ValueError: There is no program.
    """

    def __init__(self, words: Sequence[str]) -> None:
        check_texts(words, "the words of a token command")
        if not words:
            raise ValueError("a token command names a program")
        self._words = tuple(words)

    @override
    async def token(self, audience: str) -> str:
        """Run the command.

        If cancelled, it is killed.

        Raises:
            CredentialsError: It cannot be run, ends with an error, or writes no token.
        """
        name, env = self._words[0], {**os.environ, _AUDIENCE: audience}
        try:
            process = await trio.lowlevel.open_process(
                self._words, stdin=DEVNULL, stdout=PIPE, env=env
            )
        except OSError as exc:
            raise CredentialsError(f"cannot run the command {name}: {exc.strerror}") from exc
        try:
            text = await _first_line(process)
            status = await process.wait()
        finally:
            with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
                await _end_process(process)
        if status:
            raise CredentialsError(f"the command {name} ended with status {status}")
        if not is_word(text):
            why = excess(text) or "it is no token"
            raise CredentialsError(f"the first line of the command {name} cannot be used: {why}")
        return text


async def _end_process(process: trio.Process) -> None:
    """Kill a process if it still runs."""
    process.kill()
    await process.wait()
    if process.stdout is not None:
        await process.stdout.aclose()


async def _first_line(process: trio.Process) -> str:
    """Return the first line that a process writes; further output is read and discarded."""
    kept = bytearray()
    if process.stdout is not None:
        async for part in process.stdout:
            kept += part[: TOKEN_CHARS + 2 - len(kept)]
    return kept.partition(b"\n")[0].decode("ascii", "replace").strip()


_REFUSALS: Final = frozenset({400, 401, 403})
"""Statuses of a token endpoint that refuses client or grant (RFC 6749, 5.2)."""

_OK: Final = 200
_FORM: Final = "application/x-www-form-urlencoded"
_MAX_REASON: Final = 200
"""Maximum number of characters of the endpoint's reason that are logged."""


def _read_url(text: str) -> ServerUrl:
    try:
        url = ServerUrl.read(text)
    except HttpUrlError as exc:
        raise CredentialsError(str(exc)) from exc
    if is_plain(url.text):
        raise CredentialsError(f"{text} would be told secrets without TLS; it must be https:")
    return url


def _secret(given: PathInput | None) -> str | Path | None:
    """Return a secret: the text itself, or the content of the file at a path."""
    return given if isinstance(given, str) else as_path_or_none(given)


@final
@attrs.frozen(kw_only=True, eq=False, field_transformer=type_checked)
class OAuthCredentials(Credentials):
    """The token endpoint of an identity provider, asked at each login.

    With a refresh token the login is that of its user, else that of the client itself.

    Attributes:
        url: URL of the endpoint; https, or http on this machine.
        client_id: What the provider calls the client.
        secret: Secret of the client, or a file that contains it, which is read each time; None:
            the client has none, and needs a refresh token.
        refresh: File of a refresh token; a new one that the provider issues replaces it there.
        scope: The scope to ask for; None: the provider's default.
        audience: The audience to ask for; None: the domain of the node.
        tls: What the endpoint is dialled with; None: the authorities of the operating system
            are trusted.

    Raises:
        TypeError: A value is of a wrong kind.
        CredentialsError: The URL is none, or is without TLS on another machine; or there is
            neither a secret nor a refresh token.
    """

    url: str
    client_id: str
    secret: str | Path | None = attrs.field(default=None, converter=_secret, repr=False)
    refresh: Path | None = attrs.field(default=None, converter=as_path_or_none)
    scope: str | None = None
    audience: str | None = None
    tls: ssl.SSLContext | None = None
    _server: ServerUrl = attrs.field(init=False)
    _asking: trio.Lock = attrs.field(init=False, factory=trio.Lock, repr=False)

    @_server.default
    def _read_server(self) -> ServerUrl:
        if self.secret is None and self.refresh is None:
            raise CredentialsError("a client without a secret needs a refresh token")
        check_text(self.url, "OAuthCredentials.url")
        return _read_url(self.url)

    def check(self) -> None:
        """Read the files, so that errors in them are found early; blocks.

        Raises:
            CredentialsError: One cannot be used.
        """
        self._request()

    @override
    async def token(self, audience: str) -> str:
        """Ask the endpoint.

        If cancelled, a refresh token that is used once may be lost.

        Raises:
            CredentialsError: The endpoint refuses, cannot be asked, or issues no token.
        """
        async with self._asking:
            headers, form, secrets = await trio.to_thread.run_sync(
                self._request, abandon_on_cancel=True
            )
            form |= {"audience": self.audience or audience}
            answer = await self._ask(headers, urlencode(form).encode())
            issued = _read_issued(self.url, answer, secrets)
            await self._keep(issued.get("refresh_token"), form.get("refresh_token"))
        token = issued.get("access_token")
        if not isinstance(token, str) or not is_word(token):
            why = excess(token)
            raise CredentialsError(f"{self.url} issues no access token{why and f': {why}'}")
        return token

    def _request(self) -> tuple[dict[str, str], dict[str, str], list[Json]]:
        """Return headers and form of the token request, and the secrets in them; blocks."""
        headers, form = {"content-type": _FORM}, {"grant_type": "client_credentials"}
        if self.refresh is not None:
            token = read_secret(self.refresh, "refresh token")
            form = {"grant_type": "refresh_token", "refresh_token": token}
        if self.scope is not None:
            form["scope"] = self.scope
        secret = self.secret
        if isinstance(secret, Path):
            secret = read_secret(secret, "client secret")
        if secret is None:
            form["client_id"] = self.client_id
        else:
            pair = f"{quote_plus(self.client_id)}:{quote_plus(secret)}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        return headers, form, [secret, form.get("refresh_token")]

    async def _ask(self, headers: dict[str, str], form: bytes) -> HttpAnswer:
        client = HttpClient(self._server, TOKEN_ANSWER_BYTES, tls=self.tls)
        try:
            stream = await client.open("POST", "/" if self.url.endswith("/") else "", form, headers)
            return await client.rest(stream)
        except HttpError as exc:
            raise CredentialsError(str(exc)) from exc
        finally:
            await client.aclose()

    async def _keep(self, fresh: Json, old: str | None) -> None:
        """Replace the refresh token, if the provider has issued another one."""
        if self.refresh is None or not isinstance(fresh, str) or fresh == old:
            return
        try:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(_replace, self.refresh, fresh)
        except OSError as exc:
            _log.warning("refresh token", file=str(self.refresh), why=exc.strerror)


def _replace(path: Path, text: str) -> None:
    """Write a file that only its owner can read; a reader finds the old or the new one, whole."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(handle)
    fresh.replace(path)


def _read_issued(url: str, answer: HttpAnswer, secrets: Iterable[Json]) -> JsonObject:
    """Return the tokens in an endpoint's answer, or raise its refusal with secrets removed."""
    try:
        said = answer.json()
    except HttpError:
        said = None
    words = said if isinstance(said, dict) else {}
    if answer.status == _OK:
        return words
    if answer.status in _REFUSALS:
        texts = [words.get(name) for name in ("error", "error_description")]
        why = ": ".join(text for text in texts if isinstance(text, str) and text.isprintable())
        why = without(why, secrets)[:_MAX_REASON]
        reason = f"{url} refuses: {why or answer.status}"
        raise CredentialsError(reason, Code.UNAUTHENTICATED)
    raise CredentialsError(f"{url} answers with status {answer.status}")
