"""The table of foreign domains: what waits, what is refused, what is tried again; no clock."""

import attrs
import pytest

from fsm.limits.rates import QuarantineCore, TokenBucket
from fsm.machines.stub_connection import State
from fsm.session.stub_client import StubMirror
from fsm.table import UndeclaredTransitionError
from specs.limits.protocol import (
    DEPLOY_TIMEOUT,
    OUTBOX_BYTES,
    PEER_OFFENCES,
    QUARANTINE,
    RETRY_AFTER,
    RETRY_COOL_DOWN,
    SANDBOX_COOL_DOWN,
    SANDBOX_RESTARTS,
    SANDBOX_SECONDS,
    STUB_QUEUE,
)
from specs.message import Message, MessageType, refuse, stamped
from specs.reply_code import Code, DropReason
from tests.fsm.catalogue.foreign_table import NODE, STUB, B, Table, kinds

HA, HB = "hyperty://a.ex/ha", "hyperty://b.ex/hb"


def asked(number=1, to=HB, **body):
    return Message(number, MessageType.CREATE, HA, to, body)


@pytest.fixture
def table():
    return Table({B})


def up(table, now=0.0):
    """Send a first message, and let its sandbox open."""
    (*_, opened) = table.send(asked(), now)
    table.ready(opened.stub, now)
    return opened.stub


def test_the_first_message_opens_a_sandbox_and_the_others_wait_in_order(table):
    assert kinds(table.send(asked(1), 0)) == ["step", "open"]
    assert table.send(asked(2), 0) == []
    step, *handed = table.ready(STUB, 1)
    assert step.step.new == "deployed"
    assert [one.entry.message.id for one in handed] == [1, 2]
    assert kinds(table.send(asked(3), 1)) == ["deliver"]


@pytest.mark.parametrize(("size", "most"), [(1, STUB_QUEUE), (OUTBOX_BYTES // 8, 8)])
def test_waiting_messages_are_bounded_by_count_and_by_bytes(table, size, most):
    """And one user, here a sender without an identity, has half of it."""

    def of(sender, number):
        return table.send(attrs.evolve(asked(number + 1), from_=sender), 0, size)

    for sender, limit in (("hyperty://a.ex/1", "a user has"), ("hyperty://a.ex/2", "the node has")):
        done = [of(sender, number) for number in range(most // 2)]
        assert "refuse" not in kinds(one for effects in done for one in effects)
        (refusal,) = of(sender if limit == "a user has" else "hyperty://a.ex/3", most)
        assert (refusal.code, refusal.retry_after) == (Code.UNAVAILABLE, RETRY_AFTER)
        assert refusal.why.startswith(limit)


def test_a_domain_that_is_not_known_is_404(table):
    (refusal,) = table.send(asked(), 0, domain="c.ex")
    assert (refusal.code, refusal.retry_after) == (Code.NOT_FOUND, None)


def test_a_domain_that_rests_says_until_when(table):
    """STB-14: after that it is dialled again."""
    table.send(asked(), 0)
    table.gone(STUB, "no link", 1)
    (refusal,) = table.send(asked(2), 3)
    expected = (Code.UNAVAILABLE, "no route to b.ex: no link", RETRY_COOL_DOWN - 2)
    assert (refusal.code, refusal.why, refusal.retry_after) == expected


@pytest.mark.parametrize("via", [STUB, f"{STUB}/2"])
def test_a_message_that_crossed_a_stub_of_the_domain_does_not_cross_another(table, via):
    (dropped,) = table.send(asked(via=[via]), 0)
    assert (dropped.kind, dropped.reason) == ("drop", DropReason.LOOP)


def test_a_deployment_that_takes_too_long_is_over_at_its_deadline(table):
    table.send(asked(), 0)
    assert table.core.deadline() == DEPLOY_TIMEOUT
    step, refusal, end = table.tick(DEPLOY_TIMEOUT)
    assert (step.step.new, refusal.code) == ("deployment-failed", Code.UNAVAILABLE)
    assert end.stub == STUB
    table.gone(STUB, "ended", DEPLOY_TIMEOUT)
    assert kinds(table.send(asked(2), DEPLOY_TIMEOUT)) == ["refuse"]
    later = DEPLOY_TIMEOUT + RETRY_COOL_DOWN
    assert kinds(table.send(asked(3), later)) == ["step", "open"]


def test_no_stub_has_the_name_of_an_earlier_one(table):
    names = []
    for second in range(3):
        names.append(up(table, second))
        table.gone(names[-1], "killed", second)
    assert names == [STUB, f"{STUB}/2", f"{STUB}/3"]


def test_a_crash_refuses_what_was_handed_in_and_not_answered(table):
    stub = up(table)
    table.send(asked(2), 0)
    answer = stamped(Message(2, MessageType.RESPONSE, HB, HA, {"code": 200}), stub)
    assert kinds(table.posted(stub, answer, 0)) == ["pass_on"]
    effects = table.gone(stub, "killed", 0)
    assert kinds(effects) == ["refuse", "renew"]
    assert (effects[0].message.id, effects[0].code) == (1, Code.UNAVAILABLE)


def test_a_successor_gets_the_session_of_its_predecessor(table):
    stub = up(table)
    assert table.session(stub, "t1", is_anew=True) == []
    table.gone(stub, "killed", 0)
    (_, opened) = table.send(asked(2), 1)
    assert opened.token == "t1"  # noqa: S105 - no password
    table.ready(opened.stub, 1)
    assert table.session(opened.stub, "t2", is_anew=False) == []
    (renewed,) = table.session(opened.stub, "t3", is_anew=True)
    assert (renewed.kind, renewed.domain) == ("renew", B)


def test_restarts_have_an_intensity(table):
    for _ in range(SANDBOX_RESTARTS + 1):
        table.gone(up(table), "killed", 0)
    assert kinds(table.send(asked(), SANDBOX_COOL_DOWN - 1)) == ["refuse"]
    assert kinds(table.send(asked(), SANDBOX_COOL_DOWN)) == ["step", "open"]


def test_crashes_that_are_long_ago_do_not_count(table):
    for crash in range(3 * SANDBOX_RESTARTS):
        now = crash * SANDBOX_SECONDS / SANDBOX_RESTARTS
        table.gone(up(table, now), "killed", now)
    assert kinds(table.send(asked(), now)) == ["step", "open"]


def test_a_stub_that_could_not_connect_ends_its_sandbox(table):
    stub = up(table)
    (end,) = table.status(stub, State.FAILED, "401")
    assert (end.kind, end.stub, end.why) == ("end", stub, "401")
    assert kinds(table.send(asked(2), 0)) == ["refuse"]


@pytest.mark.parametrize(("reported", "code"), [(401, 503), (503, 503), (413, 413)])
def test_an_answer_of_the_stub_itself_is_no_answer_of_the_domain(table, reported, code):
    stub = up(table)
    (refusal,) = table.posted(stub, refuse(asked(), reported, "no"), 0)
    assert (refusal.code, refusal.message) == (code, asked())


def test_an_unstamped_unrequested_message_is_an_offence(table):
    stub = up(table)
    forged = Message(1, MessageType.UPDATE, HB, "hyperty://a.ex/o/changes")
    effects = [table.posted(stub, forged, 0) for _ in range(PEER_OFFENCES)]
    assert [kinds(one) for one in effects[:-1]] == [["drop"]] * (PEER_OFFENCES - 1)
    assert kinds(effects[-1]) == ["drop", "end"]
    table.gone(stub, "ended", 0)
    assert kinds(table.send(asked(), QUARANTINE - 1)) == ["refuse"]


def test_a_banished_domain_is_left_alone(table):
    stub = up(table)
    assert kinds(table.banish(B, 0)) == ["end"]
    table.gone(stub, "ended", 0)
    assert kinds(table.send(asked(), QUARANTINE - 1)) == ["refuse"]


def test_when_the_node_leaves_sandboxes_end_and_nothing_is_begun(table):
    stub = up(table)
    (end,) = table.leave()
    assert (end.kind, end.stub, end.why) == ("end", stub, "the node is going down")
    assert kinds(table.send(asked(2), 0)) == ["refuse"]


# ---- what is beside it


CONNECTION, LINK = "stub_connection", "node_link"


def test_a_mirror_follows_the_table_and_nothing_else():
    mirror = StubMirror(STUB)
    assert mirror.follow(CONNECTION, "constructed", "created", "").new == "created"
    for machine, cause, target in (
        (CONNECTION, "established", "live"),
        (CONNECTION, "connect", "live"),
        (CONNECTION, "fly", "created"),
        (LINK, "dialled", "opening"),
        ("session", "opened", "open"),
    ):
        with pytest.raises(UndeclaredTransitionError):
            StubMirror(STUB).follow(machine, cause, target, "")
    assert [step.new for step in mirror.rest("killed")] == ["failed"]
    assert mirror.rest("killed") == []


@pytest.mark.parametrize(
    ("causes", "rests"),
    [
        ("dial", ["ended"]),
        ("dial dialled", ["ended"]),
        ("dial dialled session-opened", ["paused", "ended"]),
        ("dial dialled session-opened ping", ["paused", "ended"]),
        ("dial lost", ["ended"]),
        ("dial dialled session-opened close", ["ended"]),
    ],
)
def test_the_link_of_a_stub_ends_with_its_sandbox(causes, rests):
    ways = {"dial": "dialling", "dialled": "opening", "session-opened": "open"}
    ways |= {"ping": "pinging", "lost": "paused", "close": "closing"}
    mirror = StubMirror(STUB)
    for cause in causes.split():
        mirror.follow(LINK, cause, ways[cause], "")
    assert [step.new for step in mirror.rest("killed")] == rests


def test_a_node_is_kept_out_after_so_many_offences_and_forgiven_later():
    core = QuarantineCore()
    assert [core.offended(NODE, 0) for _ in range(PEER_OFFENCES)][-2:] == [False, True]
    assert core.holds(NODE, QUARANTINE - 1)
    assert not core.holds(NODE, QUARANTINE)
    assert not core.offended(NODE, QUARANTINE)


def test_a_rate_allows_a_burst_and_then_its_rate():
    pace = TokenBucket(10.0, 2)
    assert [pace.spend(100.0) for _ in range(2)] == [0.0, 0.0]
    assert pace.spend(100.0) == pytest.approx(0.1)
    assert pace.spend(101.0) == 0.0
