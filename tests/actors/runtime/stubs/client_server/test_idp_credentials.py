"""What the answers of an identity provider are to a login (PFY-12, M-55)."""

import pytest

from actors.kit.ids import IdSource
from actors.runtime.bus.mini_bus import MiniBusPort
from actors.runtime.stubs.credentials import CredentialsError
from actors.runtime.stubs.login import IdpCredentials
from specs.message import refuse, reply_to
from tests.support.node.issuer import ALICE

R = "hyperty-runtime://a.ex/ra"


class Answering(MiniBusPort):
    """A port whose requests are all answered alike."""

    def __init__(self, answer):
        self.url = f"{R}/ua"
        self.answer = answer
        self.asked = []

    async def request(self, message):
        self.asked.append(message)
        return self.answer(message)

    async def unused(self, *_):
        raise NotImplementedError

    post = hand_back = add_listener = remove_listener = announce = unused


def credentials(answer):
    made = IdpCredentials(ALICE, {"hint": "x", "origin": "somebody else"})
    port = Answering(answer)
    made.ask_by(port, IdSource(), "thumb", has_gui=True)
    return made, port


@pytest.mark.parametrize("secret", ["hunter2", {"word": ["hunter2"]}])
async def test_a_reason_that_quotes_a_secret_is_not_passed_on(secret):
    """SEC-41: it would be logged, and shown to whoever waits for the session."""
    made = IdpCredentials(ALICE, {"secret": secret, "pin": "no"})
    for said, why in (("hunter2 is wrong", "it quotes a secret"), ("no", "401 no")):
        port = Answering(lambda asked, said=said: refuse(asked, 401, said))
        made.ask_by(port, IdSource(), "thumb", has_gui=False)
        with pytest.raises(CredentialsError, match=why) as refused:
            await made.token("a.ex")
        assert "hunter2" not in str(refused.value)


async def test_without_a_runtime_there_is_no_token():
    with pytest.raises(CredentialsError, match="no runtime"):
        await IdpCredentials(ALICE).token("a.ex")


async def test_a_login_page_is_shown_and_what_it_ends_with_is_the_hint():
    """ADR-03: upstream's `loginUrl`."""

    def answer(asked):
        if asked.to.endswith("/identity-gui"):
            return reply_to(asked, 200, {"value": "code-7"})
        is_known = asked.body["params"]["usernameHint"] == "code-7"
        page = {"loginUrl": "https://idp.ex/login"}
        return reply_to(asked, 200, {"value": "abc.def" if is_known else page})

    made, port = credentials(answer)
    assert await made.token("a.ex") == "abc.def"
    shown = port.asked[1]
    assert (shown.to, shown.body["method"]) == (f"{R}/identity-gui", "openPopup")
    assert shown.body["params"] == {"urlreq": "https://idp.ex/login"}


async def test_a_page_that_nobody_sees_is_no_login():
    def answer(asked):
        if asked.to.endswith("/identity-gui"):
            return refuse(asked, 404, "this runtime shows its user nothing")
        return reply_to(asked, 200, {"value": {"loginUrl": "https://idp.ex/login"}})

    made, port = credentials(answer)
    with pytest.raises(CredentialsError, match="shows its user nothing") as refused:
        await made.token("a.ex")
    assert (refused.value.code, len(port.asked)) == (401, 2)
