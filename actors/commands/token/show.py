"""`python -m actors token show`: what a token claims, and why a node would refuse it."""

import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Final

import click

from actors.cli.failure import run, say
from actors.cli.group import CommandError, ExitCode, echo
from actors.cli.options import Quantity, check_domain, if_given
from actors.commands.node.command import key_source
from actors.keys.key_source import KeysAwayError, KeySource
from actors.keys.token import BadTokenError, SignedToken, key_of, read_token, verified
from actors.node.login.key_provider import terms_of
from fsm.session.assertion import AssertionCore, AssertionTerms, Unacceptable
from specs.jsonvalue import Json
from specs.limits.node import TOKEN_CHARS, TOKEN_LIFE

_STDIN: Final = "-"


def _check_both(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    if value is not None and ctx.params.get("domain") is None:
        raise click.UsageError("--jwks verifies for the node of a domain; give --domain as well")
    return value


@click.command("show")
@click.argument("token", metavar="TOKEN|-")
@click.option(
    "--domain",
    is_eager=True,
    callback=if_given(check_domain),
    help="Domain whose node would receive it.",
)
@click.option(
    "--jwks",
    metavar="FILE|URL",
    callback=_check_both,
    help="Public keys to verify it, as that node does.",
)
@click.option(
    "--client",
    metavar="TEXT",
    multiple=True,
    help="As of the node: a client whose tokens it accepts; repeatable.",
)
@click.option(
    "--max-token-life",
    metavar="SECONDS",
    type=Quantity(min=1),
    default=TOKEN_LIFE,
    show_default=True,
    help="As of the node: it refuses tokens that live longer.",
)
def command(
    *,
    token: str,
    domain: str | None,
    jwks: str | None,
    client: tuple[str, ...],
    max_token_life: float,
) -> int:
    """Show the claims of a token; - reads it from standard input.

    Without --jwks nothing is verified: anyone can have written it. With --jwks and
    --domain it exits with 4 if a node of that domain would refuse it, and says why. Of a
    token that is bound to a key (claim cnf), the holder is assumed to show it.
    """
    text = sys.stdin.read(TOKEN_CHARS + 2) if token == _STDIN else token
    try:
        read = read_token(text.strip())
    except BadTokenError as exc:
        raise CommandError(
            f"{exc}; copy it whole, or have a file read by `token show - < FILE`", ExitCode.FAILED
        ) from exc
    if jwks is None:
        _show(read, {"verified": False})
        echo("protofly: nothing of this is verified; give --jwks and --domain", err=True)
        return ExitCode.OK
    terms = terms_of(domain or "", clients=client, life=max_token_life)
    return run(partial(_verify, read, key_source(jwks), terms))


async def _verify(token: SignedToken, source: KeySource, terms: AssertionTerms) -> ExitCode:
    try:
        claims = verified(token, await source.fetch())
    except KeysAwayError as exc:
        raise CommandError(f"{exc}; correct --jwks", ExitCode.CANNOT_CONNECT) from exc
    except BadTokenError as exc:
        raise CommandError(f"a node would refuse it: {exc.reason}", ExitCode.REFUSED) from exc
    finally:
        await source.aclose()
    bound = key_of(claims)
    verdict = AssertionCore(terms).judge(claims, token.digest, time.time_ns() / 1e9, bound)
    _show(token, {"verified": True})
    if isinstance(verdict, Unacceptable):
        raise CommandError(f"a node would refuse it: {verdict.why}", ExitCode.REFUSED)
    return ExitCode.OK


def _show(token: SignedToken, verdict: Mapping[str, Json]) -> None:
    say("token", **verdict, kid=token.key_name, alg=token.algorithm, claims=token.claims)
