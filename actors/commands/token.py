"""`python -m actors token`: keys and login tokens, for development."""

import os
import re
import sys
import time
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final

import click
import orjson

from actors.cli.failure import run, say
from actors.cli.group import CommandError, ExitCode, OrderedGroup, advise_on, echo
from actors.cli.options import DOMAIN, Quantity, define_command
from actors.commands.config import read_signer
from actors.keys.key_file import KeyFileError, open_key_file
from actors.keys.key_set import ALGORITHMS, BadKeysError, read_keys
from actors.keys.key_source import KeysAwayError, KeySource
from actors.keys.runtime_key import read_runtime_key
from actors.keys.signing import make_key
from actors.keys.token import (
    BadTokenError,
    SignedToken,
    key_of,
    login_claims,
    read_token,
    read_verified,
)
from actors.kit.files import PRIVATE, write_whole
from actors.node.login.key_provider import terms_of
from fsm.commands.parameters import FOLDER, HELP_OPTIONS, argument, option
from fsm.session.assertion import AssertionCore, AssertionTerms, Unacceptable
from specs.addresses.address import RUNTIME_SCHEME, canonical, host_of, is_node, message_node, parse
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import JWKS_BYTES, TOKEN_CHARS, TOKEN_LIFE


@click.group("token", context_settings=HELP_OPTIONS, cls=OrderedGroup)
def command() -> None:
    """Make keys and login tokens for development.

    A node started with --jwks takes such tokens; in production an identity provider
    makes them. Keys for EdDSA sign catalogues, too.
    """


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PRIVATE_FOLDER: Final = 0o700
"""Mode of the folder: only its owner may add keys, since their holders can log in."""

_SET: Final = "jwks.json"


def _read_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise click.BadParameter(f"{text!r} is no name such as 2026-11 of at most 64 characters")
    return text


@define_command("keys", command, short_help="Make a key that signs, and the set of public keys.")
def make_keys(
    *,
    out: Path = option(type=FOLDER),
    alg: str = option(type=click.Choice(ALGORITHMS), default="EdDSA"),
    kid: str | None = option("NAME", read=_read_name),
) -> None:
    """Make a key that signs tokens, and put its public part into DIR/jwks.json.

    The private key goes into a file of its own that only you can read; no file is
    overwritten. Called again it adds another key to the set: tokens of both are good
    until you take the old one out of the set.

    Args:
        out: Directory of the files; made if it does not exist.
        alg: Algorithm of the key.
        kid: Name of the key in tokens [default: made from the key].
    """
    key = make_key(alg, kid)
    private, public = out / f"{key.name}.key.json", out / _SET
    try:
        out.mkdir(_PRIVATE_FOLDER, parents=True, exist_ok=True)
        entries = _entries(public, key.name)
        _write_new(private, orjson.dumps(key.private()))
        write_whole(public, orjson.dumps({"keys": [*entries, key.public()]}))
    except FileExistsError as exc:
        raise CommandError(
            f"{exc.filename} is there already; choose another --kid or directory"
        ) from exc
    except OSError as exc:
        raise CommandError(
            f"cannot write {exc.filename}: {exc.strerror}; choose another directory with --out"
        ) from exc
    say("token-keys", kid=key.name, alg=alg, key=str(private), jwks=str(public))


def _entries(public: Path, name: str) -> list[Json]:
    """Return the keys that are in the set already."""
    if not public.exists():
        return []
    text = public.read_bytes()
    advice = "mend it or choose another directory"
    with advise_on(BadKeysError, what=f"cannot add to {public}", advice=advice):
        known = read_keys(text)
    if name in known:
        raise CommandError(f"{public} has a key {name!r} already; choose another --kid")
    content: JsonObject = orjson.loads(text)
    entries = content["keys"]
    return entries if isinstance(entries, list) else []


def _write_new(path: Path, text: bytes) -> None:
    """Write a new file that only its owner can read; never overwrite a file."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "wb") as file:
        file.write(text)


@define_command(
    "key", command, short_help="Show the thumbprint of a runtime's key, made if it is not there."
)
def show_key(*, file: Path = argument()) -> None:
    """Show the thumbprint of the key in FILE, which `runtime --identity FILE` uses.

    A file that does not exist is made, with a new key, and only you can read it. A token that is
    bound to the thumbprint, by `token issue --for-key`, opens sessions for the holder of the key
    only.
    """
    with advise_on(KeyFileError, advice="name another FILE"):
        echo(open_key_file(file).thumbprint)


_LIFE: Final = 300.0
"""Default validity of a token, in seconds."""


def _read_user(text: str) -> str:
    url = parse(canonical(text))
    if url.scheme != "user" or not url.path:
        raise click.BadParameter(f"{text!r} is no user such as user://a.example/alice")
    return url.text


def _read_runtime(text: str) -> str:
    url = parse(canonical(text))
    if not is_node(url.text) and (url.scheme != RUNTIME_SCHEME or len(url.path) != 1):
        raise click.BadParameter(
            f"{text!r} is no runtime such as {RUNTIME_SCHEME}://a.example/ra, and no node such as "
            f"{message_node('a.example')}"
        )
    return url.text


_THUMBPRINT: Final = re.compile("[A-Za-z0-9_-]{43}")


def _read_thumbprint(text: str) -> str:
    """Return the thumbprint of a key, from the text itself or from its file."""
    path = Path(text)
    if not path.exists() and _THUMBPRINT.fullmatch(text):
        return text
    try:
        with path.open("rb") as file:
            return read_runtime_key(file.read(JWKS_BYTES)).thumbprint
    except OSError as exc:
        raise click.BadParameter(
            f"{text!r} is no thumbprint and no file of a key; see `token key`"
        ) from exc
    except BadKeysError as exc:
        raise click.BadParameter(f"{text} holds no key of a runtime: {exc.reason}") from exc


@define_command("issue", command, short_help="Make a token and print it.")
def issue(  # noqa: PLR0913 - one for each option
    *,
    key: Path = option(),
    user: str = option(required=True, read=_read_user),
    domain: str = option(required=True, read=DOMAIN),
    issuer: str | None = option(),
    role: tuple[str, ...] = option("NAME"),
    runtime: str | None = option("URL", read=_read_runtime),
    address: tuple[str, ...] = option("URL", read=canonical),
    for_key: str | None = option("THUMBPRINT|FILE", read=_read_thumbprint),
    life: float = option("SECONDS", type=Quantity(min=1, max=TOKEN_LIFE), default=_LIFE),
    not_before: float | None = option("SECONDS", type=Quantity(min=0)),
) -> None:
    """Make a login token and print it.

    It opens one session, once.

    Args:
        key: Private key, made by `token keys`.
        user: User of the token.
        domain: Domain whose node accepts it.
        issuer: Issuer [default: the user's domain].
        role: Role of the user; repeatable.
        runtime: Only runtime that may use it, or the node of another domain, which needs a token
            that names it.
        address: Address of the runtime, and all below it, at the node of another domain than its
            own; repeatable.
        for_key: Only holder of this key may use it: the thumbprint that `token key` shows, or the
            file.
        life: Validity of the token.
        not_before: Seconds until it becomes valid [default: 0].
    """
    signer, now = read_signer(key), time.time_ns() // 1_000_000_000
    claims: dict[str, Json] = {
        "iss": issuer or host_of(user),
        **login_claims(user, domain, now, life),
        "nbf": None if not_before is None else now + int(not_before),
        "roles": [*role] or None,
        "runtime": runtime,
        "addresses": [*address] or None,
        "cnf": None if for_key is None else {"jkt": for_key},
    }
    echo(signer.signed({name: value for name, value in claims.items() if value is not None}))


_STDIN: Final = "-"


@define_command(
    "show", command, short_help="Show what a token claims, and why a node would refuse it."
)
def show(
    *,
    token: str = argument("TOKEN|-"),
    domain: str | None = option(read=DOMAIN),
    jwks: str | None = option("FILE|URL"),
    client: tuple[str, ...] = option(),
    max_token_life: float = option("SECONDS", type=Quantity(min=1), default=TOKEN_LIFE),
) -> int:
    """Show the claims of a token; - reads it from standard input.

    Without --jwks nothing is verified: anyone can have written it. With --jwks and
    --domain it exits with 4 if a node of that domain would refuse it, and says why. Of a
    token that is bound to a key (claim cnf), the holder is assumed to show it.

    Args:
        domain: Domain whose node would receive it.
        jwks: Public keys to verify it, as that node does.
        client: As of the node: a client whose tokens it accepts; repeatable.
        max_token_life: As of the node: it refuses tokens that live longer.
    """
    if jwks is not None and domain is None:
        raise click.UsageError("--jwks verifies for the node of a domain; give --domain as well")
    text = sys.stdin.read(TOKEN_CHARS + 2) if token == _STDIN else token
    advice = "copy it whole, or have a file read by `token show - < FILE`"
    with advise_on(BadTokenError, advice=advice, code=ExitCode.FAILED):
        read = read_token(text.strip())
    if jwks is None:
        _show(read, {"verified": False})
        echo("protofly: nothing of this is verified; give --jwks and --domain", err=True)
        return ExitCode.OK
    from actors.commands.node.fields import key_source  # noqa: PLC0415 - slow to import

    terms = terms_of(domain or "", clients=client, life=max_token_life)
    return run(partial(_verify, read, key_source(jwks), terms))


async def _verify(token: SignedToken, source: KeySource, terms: AssertionTerms) -> ExitCode:
    try:
        async with aclosing(source):
            with advise_on(KeysAwayError, advice="correct --jwks", code=ExitCode.CANNOT_CONNECT):
                claims = read_verified(token, await source.fetch())
    except BadTokenError as exc:
        raise CommandError(f"a node would refuse it: {exc.reason}", ExitCode.REFUSED) from exc
    bound = key_of(claims)
    verdict = AssertionCore(terms).judge(claims, token.digest, time.time_ns() / 1e9, bound)
    _show(token, {"verified": True})
    if isinstance(verdict, Unacceptable):
        raise CommandError(f"a node would refuse it: {verdict.why}", ExitCode.REFUSED)
    return ExitCode.OK


def _show(token: SignedToken, verdict: Mapping[str, Json]) -> None:
    say("token", **verdict, kid=token.key_name, alg=token.algorithm, claims=token.claims)
