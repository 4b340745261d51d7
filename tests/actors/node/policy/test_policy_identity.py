"""Policies ask who sent a message, and who vouches for that."""

import json

import pytest

from fsm.policy.terms import Result
from tests.support.node.issuer import ALICE, BOB, Issuer
from tests.support.node.node_peer import RB, SESSION, open_world
from tests.support.node.policing import logged_in, one_policy, optional_login, policed, rule

NODE_B = "domain://msg-node.b.ex"
RX, USER_B = "hyperty-runtime://b.ex/rx", "user://b.ex/bob"
TO_B = f'target = {{ msgTo = {{ equals = "{RB}/h" }} }}\n'


def to_b(name, effect, condition=""):
    """Return a rule on messages to the hyperty."""
    more = f"condition = {{ {condition} }}\n" if condition else ""
    return rule(name, f'effect = "{effect}"\n{TO_B}{more}')


KNOWN = '["identity-provider", "domain"]'
BY_USER = one_policy(
    to_b("alice", "permit", f'identity.user = {{ equals = "{ALICE}" }}'),
    to_b("rest", "deny"),
)
BY_VOUCHER = one_policy(
    to_b("none", "deny", 'identity = { vouched_by = { equals = "none" } }'),
    to_b("others", "deny", f"not = {{ identity.vouched_by = {{ in = {KNOWN} }} }}"),
)
BY_RUNTIME = one_policy(
    to_b("rx", "permit", 'identity.runtime = { equals = "runtime://b.ex/rx" }'),
    to_b("rest", "deny"),
)


async def code_of(peer, from_, **body):
    """Send a request to the hyperty; return the code of the refusal, 0: there was none."""
    message = {"id": 77, "type": "create", "from": from_, "to": f"{RB}/h", "body": body}
    await peer.raw(json.dumps(message).encode())
    return 0 if await peer.silence() else (await peer.hear()).code


@pytest.mark.parametrize(
    ("text", "user", "code"),
    [
        (BY_USER, ALICE, 0),
        (BY_USER, BOB, 403),
        # Unknown: the message is refused, as for every attribute that cannot be had.
        (BY_USER, None, 403),
        (BY_VOUCHER, BOB, 0),
        (BY_VOUCHER, None, 403),
    ],
)
async def test_the_sender_of_a_session_is_judged(text, user, code, tmp_path, autojump_clock):
    issuer = Issuer()
    async with open_world(**policed(tmp_path, text), **optional_login(issuer)) as world:
        await world.peer(RB)
        if user is None:
            peer = await world.peer()
        else:
            peer = await logged_in(world, issuer, sub=user)
        lie = {"runtime": RX, "user": ALICE, "vouchedBy": "identity-provider"}
        assert await code_of(peer, f"{peer.runtime}/h", identity=lie) == code


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        (BY_VOUCHER, {"runtime": RX, "user": USER_B, "vouchedBy": "domain"}, 0),
        (BY_VOUCHER, {"runtime": RX, "user": ALICE, "vouchedBy": "domain"}, 403),
        (BY_RUNTIME, {"runtime": RX, "vouchedBy": "none"}, 0),
        (BY_RUNTIME, {"runtime": "hyperty-runtime://b.ex/ry", "vouchedBy": "none"}, 403),
        (BY_RUNTIME, {"runtime": "hyperty-runtime://c.ex/rx", "vouchedBy": "none"}, 403),
        (BY_RUNTIME, None, 403),
        (BY_USER, {"runtime": RX, "user": ALICE, "vouchedBy": "identity-provider"}, 403),
    ],
)
async def test_what_another_domains_node_says_is_judged(text, said, code, tmp_path, autojump_clock):
    async with open_world(**policed(tmp_path, text)) as world:
        await world.peer(RB)
        node = await world.peer(NODE_B)
        assert await code_of(node, "hyperty://b.ex/h", identity=said) == code


@pytest.mark.parametrize(("default", "code"), [(Result.PERMIT, 0), (Result.DENY, 403)])
async def test_where_no_rule_applies_the_default_decides(default, code, tmp_path, autojump_clock):
    opening = f'effect = "permit"\ntarget = {{ msgTo = {{ equals = "{SESSION}" }} }}'
    by_session = one_policy(
        rule("sessions", opening),
        to_b("bob", "deny", f'identity = {{ runtime = {{ equals = "{RX}" }} }}'),
    )
    async with open_world(**policed(tmp_path, by_session, default=default)) as world:
        await world.peer(RB)
        peer = await world.peer()
        assert await code_of(peer, f"{peer.runtime}/h") == code


async def test_the_user_of_a_login_is_judged_when_its_session_is_opened(tmp_path, autojump_clock):
    text = one_policy(
        rule("bob", f'effect = "deny"\ntarget = {{ identity.user = {{ equals = "{BOB}" }} }}')
    )
    issuer = Issuer()
    async with open_world(**policed(tmp_path, text), **optional_login(issuer)) as world:
        peer = await world.outsider()
        answer = await peer.control("open", runtimeURL=peer.runtime, token=issuer.token(sub=BOB))
        assert answer.code == 403
        await logged_in(world, issuer, sub=ALICE)
