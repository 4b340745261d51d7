"""Where the runtimes of a simulation get their logins: so that who died may come back.

Without a login a node gives the session of a runtime to nobody else until it is forgotten. Each
domain has an issuer, which states at other domains what its runtimes may speak for.
"""

from typing import Final

import trio
from joserfc.jwk import OKPKey

from actors.node.config import OBJECT_SCHEMES
from actors.node.login.provider import Admission, Login
from actors.runtime.stubs.credentials import Credentials
from specs.addresses.address import domain_of
from tests.support.node.issuer import Issuer, login_by

_KEY: Final = OKPKey.import_key(
    {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": "UnatImkXo9-Z3_M9hep4EQ3-BJz_gaJFOoASDyMHnOg",
        "d": "cHJvdG9mbHkgc2ltdWxhdGVzOyBubyBzZWNyZXQgMzI",
    }
)
"""Always the same: its signatures are part of what is the same in every run."""

_EVERYWHERE: Final = "everywhere"


def login_of(issuer: Issuer) -> Login:
    """Let in who has a token of the logins, and outsiders."""
    return login_by(issuer, admission=Admission.ANYBODY)


def issuer() -> Issuer:
    """Return who signs for all runtimes of a run."""
    return Issuer(_KEY, domain=_EVERYWHERE)


class Logins(Credentials):
    """Gives one runtime, or node, a new token whenever it asks: good for it alone."""

    def __init__(self, issuer: Issuer, url: str) -> None:
        self._issuer = issuer
        self._url = url
        self._user = f"user://idp.ex/{url.rpartition('/')[2]}"

    async def token(self, audience: str) -> str:
        await trio.lowlevel.checkpoint()
        self._issuer.now = trio.current_time()
        domain = domain_of(self._url)
        stated = [f"{scheme}://{domain}" for scheme in ("hyperty", *sorted(OBJECT_SCHEMES))]
        return self._issuer.token(
            iss=f"https://{domain}", sub=self._user, runtime=self._url, addresses=stated
        )
