"""A node that comes back without memory, where runtimes log in: they come back, too (STB-09)."""

import attrs
import trio
from typing_extensions import override

from actors.node.login.provider import Admission
from actors.runtime.stubs.credentials import Credentials
from tests.actors.runtime.stubs.test_node_restart import open_place
from tests.support.node.issuer import Issuer, login_by


@attrs.define
class TokenDesk(Credentials):
    """Where runtimes get tokens: fresh ones, or none but the last one while it is shut."""

    issuer: Issuer
    is_shut: bool = False
    last: str = ""
    taken: int = 0

    @override
    async def token(self, audience: str) -> str:
        await trio.lowlevel.checkpoint()
        self.taken += 1
        if not self.is_shut:
            self.issuer.now = trio.current_time()
            self.last = self.issuer.token()
        return self.last


def login_place(admission=Admission.VOUCHED):
    issuer = Issuer()
    login = login_by(issuer, admission=admission)
    return open_place(login=login, credentials=TokenDesk(issuer))
