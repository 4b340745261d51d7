"""`python -m actors token issue`: a login token, for development."""

import re
import secrets
import time
from pathlib import Path
from typing import Final

import click

from actors.cli.group import echo
from actors.cli.options import Quantity, check_address, check_domain, if_given
from actors.commands.config import read_signer
from actors.keys.key_set import BadKeysError
from actors.keys.runtime_key import read_runtime_key
from specs.addresses.address import RUNTIME_SCHEME, host_of, is_node, message_node, parse
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import JWKS_BYTES, TOKEN_LIFE

_LIFE: Final = 300.0
"""Default validity of a token, in seconds."""

_NAME_BYTES: Final = 16


def _check_user(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    url = parse(check_address(ctx, parameter, value))
    if url.scheme != "user" or not url.path:
        raise click.BadParameter(f"{value!r} is no user such as user://a.example/alice")
    return url.text


def _check_runtime(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    url = parse(check_address(ctx, parameter, value))
    if not is_node(url.text) and (url.scheme != RUNTIME_SCHEME or len(url.path) != 1):
        raise click.BadParameter(
            f"{value!r} is no runtime such as {RUNTIME_SCHEME}://a.example/ra, and no node such as "
            f"{message_node('a.example')}"
        )
    return url.text


def _check_addresses(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(check_address(ctx, parameter, value) for value in values)


_THUMBPRINT: Final = re.compile("[A-Za-z0-9_-]{43}")


def _check_key(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return the thumbprint of a key that is given by it, or by its file."""
    path = Path(value)
    if not path.exists() and _THUMBPRINT.fullmatch(value):
        return value
    try:
        with path.open("rb") as file:
            return read_runtime_key(file.read(JWKS_BYTES)).thumbprint
    except OSError as exc:
        raise click.BadParameter(
            f"{value!r} is no thumbprint and no file of a key; see `token key`"
        ) from exc
    except BadKeysError as exc:
        raise click.BadParameter(f"{value} holds no key of a runtime: {exc.reason}") from exc


@click.command("issue")
@click.option(
    "--key",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Private key, made by `token keys`.",
)
@click.option("--user", required=True, callback=_check_user, help="User of the token.")
@click.option(
    "--domain", required=True, callback=check_domain, help="Domain whose node accepts it."
)
@click.option("--issuer", metavar="TEXT", help="Issuer [default: the user's domain].")
@click.option("--role", metavar="NAME", multiple=True, help="Role of the user; repeatable.")
@click.option(
    "--runtime",
    metavar="URL",
    callback=_check_runtime,
    help="Only runtime that may use it, or the node of another domain, which needs a token that "
    "names it.",
)
@click.option(
    "--address",
    metavar="URL",
    multiple=True,
    callback=_check_addresses,
    help="Address of the runtime, and all below it, at the node of another domain than its own; "
    "repeatable.",
)
@click.option(
    "--for-key",
    metavar="THUMBPRINT|FILE",
    callback=if_given(_check_key),
    help="Only holder of this key may use it: the thumbprint that `token key` shows, or the file.",
)
@click.option(
    "--life",
    metavar="SECONDS",
    type=Quantity(min=1, max=TOKEN_LIFE),
    default=_LIFE,
    show_default=True,
    help="Validity of the token.",
)
@click.option(
    "--not-before",
    metavar="SECONDS",
    type=Quantity(min=0),
    help="Seconds until it becomes valid [default: 0].",
)
def command(  # noqa: PLR0913 - one for each option
    *,
    key: Path,
    user: str,
    domain: str,
    issuer: str | None,
    role: tuple[str, ...],
    runtime: str | None,
    address: tuple[str, ...],
    for_key: str | None,
    life: float,
    not_before: float | None,
) -> None:
    """Make a login token and print it.

    It opens one session, once.
    """
    signer, now = read_signer(key), time.time_ns() // 1_000_000_000
    claims = _given(
        iss=issuer or host_of(user),
        sub=user,
        aud=domain,
        iat=now,
        nbf=None if not_before is None else now + int(not_before),
        exp=now + int(life),
        jti=secrets.token_urlsafe(_NAME_BYTES),
        roles=[*role] or None,
        runtime=runtime,
        addresses=[*address] or None,
        cnf=None if for_key is None else {"jkt": for_key},
    )
    echo(signer.signed(claims))


def _given(**claims: Json) -> JsonObject:
    """Return the claims that there are; None: there is none."""
    return {name: value for name, value in claims.items() if value is not None}
