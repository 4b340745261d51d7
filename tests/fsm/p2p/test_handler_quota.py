"""How many links a handler has for others (T11)."""

from fsm.p2p.link_end import HandlerQuota
from specs.limits.p2p import HANDLED_LINKS, HANDLED_OF_DOMAIN, INVITATION_BURST, INVITATION_RATE


def runtimes(count, domain="b.ex"):
    return [f"hyperty-runtime://{domain}/r{number}" for number in range(count)]


def test_one_runtime_asks_as_often_as_it_may_and_later_again():
    quota, (remote,) = HandlerQuota(), runtimes(1)
    asked = [quota.refusal(remote, [], 0.0) for _ in range(INVITATION_BURST + 1)]
    assert asked[:-1] == [None] * INVITATION_BURST
    assert "too often" in asked[-1]
    assert quota.refusal("hyperty-runtime://b.ex/other", [], 0.0) is None
    assert quota.refusal(remote, [], 1 / INVITATION_RATE) is None


def test_the_runtimes_of_one_domain_do_not_take_all_there_is():
    quota, many = HandlerQuota(), runtimes(HANDLED_OF_DOMAIN)
    assert "domain" in quota.refusal("hyperty-runtime://b.ex/one-more", many, 0.0)
    assert quota.refusal("hyperty-runtime://c.ex/rc", many, 0.0) is None


def test_a_peer_with_a_link_may_replace_it_also_when_all_are_taken():
    quota, many = HandlerQuota(), runtimes(HANDLED_OF_DOMAIN)
    assert quota.refusal(many[0], many, 0.0) is None


def test_the_quota_holds_for_every_requester():
    many = [f"hyperty-runtime://d{number}.ex/r" for number in range(HANDLED_LINKS)]
    assert "too many" in HandlerQuota().refusal("hyperty-runtime://c.ex/rc", many, 0.0)
