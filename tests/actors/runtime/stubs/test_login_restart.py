"""A node that comes back without memory, where runtimes log in: they come back, too (STB-09)."""

import attrs
import pytest
import trio
from typing_extensions import override

from actors.node.login.provider import Admission
from actors.runtime.stubs.credentials import Credentials
from fsm.judge.trace_line import Verdict
from specs.trace import Kind
from tests.actors.runtime.stubs.test_node_restart import open_place
from tests.support.node.issuer import Issuer, login_by
from tests.support.runtime.domain import judged


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


@pytest.mark.parametrize("admission", Admission)
@pytest.mark.parametrize("pause", [0.5, 61])
async def test_a_runtime_that_has_logged_in_logs_in_again_after_a_restart(
    pause, admission, autojump_clock
):
    """Each once more; records and addresses are those it had."""
    async with login_place(admission) as place:
        one, other = place.members
        assert (await one.ask(other, 1)).code == 200
        assert place.credentials.taken == 2
        await place.restart_node(pause)
        await trio.sleep(15)
        assert (await one.ask(other, 2)).code == 200
        assert (await other.ask(one, 3)).code == 200
        assert place.credentials.taken == 4
    last = {(f.machine, f.key): f.new for f in place.tracer.facts if f.k is Kind.STATE}
    assert {("registration", one.address), ("registration", other.address)} < {*last}
    assert {judged(member).verdict for member in place.members} == {Verdict.CONFORMANT}


async def test_an_expired_token_opens_no_session_until_there_is_a_fresh_one(autojump_clock):
    """Whoever keeps the file of the token fresh may be late: it is asked for at each attempt."""
    async with login_place() as place:
        one, other = place.members
        place.credentials.is_shut = True
        place.credentials.issuer.now = -10_000
        place.credentials.last = place.credentials.issuer.token()
        await place.restart_node(1)
        await trio.sleep(60)
        assert (await one.ask(other, 1)).code != 200
        place.credentials.is_shut = False
        await trio.sleep(15)
        assert (await one.ask(other, 2)).code == 200
    assert {judged(member).verdict for member in place.members} == {Verdict.CONFORMANT}
