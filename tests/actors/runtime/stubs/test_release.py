"""A runtime gives names of its user back to the node (S6, MN-21)."""

import pytest

from actors.runtime.stubs.credentials import ReleaseError
from fsm.judge.trace_line import Verdict
from specs.errors import BadUrlError
from tests.actors.runtime.stubs.test_login_restart import login_place
from tests.support.runtime.domain import judged, open_domain


async def test_a_runtime_releases_its_own_name_and_goes_on(autojump_clock):
    async with login_place() as place:
        one, other = place.members
        await one.runtime.release_name()
        await one.runtime.release_name(other.runtime.url.rpartition("/")[2])
        assert (await one.ask(other, 1)).code == 200
    assert {judged(member).verdict for member in place.members} == {Verdict.CONFORMANT}


async def test_a_name_of_nobody_is_not_released(autojump_clock):
    async with login_place() as place:
        runtime = place.members[0].runtime
        with pytest.raises(ReleaseError, match="is no name of this user") as caught:
            await runtime.release_name("nobody")
        assert caught.value.code == 404
        with pytest.raises(BadUrlError):
            await runtime.release_name("no/name")


async def test_without_a_login_names_belong_to_nobody(autojump_clock):
    async with open_domain("alice") as domain:
        with pytest.raises(ReleaseError, match="no login") as caught:
            await domain["alice"].runtime.release_name()
        assert caught.value.code == 403
        assert (await domain["alice"].ask(domain["alice"], 1)).code == 200
