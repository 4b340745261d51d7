"""How many links a handler has for others (T11)."""

from fsm.p2p.link_end import HandlerQuota
from specs.limits.p2p import HANDLED_LINKS, HANDLED_OF_DOMAIN


def runtimes(count, domain="b.ex"):
    return [f"hyperty-runtime://{domain}/r{number}" for number in range(count)]


def test_a_peer_with_a_link_may_replace_it_also_when_all_are_taken():
    quota, many = HandlerQuota(), runtimes(HANDLED_OF_DOMAIN)
    assert quota.refusal(many[0], many, 0.0) is None


def test_the_quota_holds_for_every_requester():
    many = [f"hyperty-runtime://d{number}.ex/r" for number in range(HANDLED_LINKS)]
    assert "too many" in HandlerQuota().refusal("hyperty-runtime://c.ex/rc", many, 0.0)
