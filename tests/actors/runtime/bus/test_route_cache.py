"""What waits for a route, and what is remembered of routes, is bounded."""

import math

import pytest

from actors.runtime.bus.outbound import RouteCache
from fsm.effects import Intent
from specs.limits.protocol import STUB_QUEUE
from tests.support.wire.wire import ask

REACH = Intent.REACH


@pytest.fixture
def cache():
    return RouteCache()


def route(number):
    return f"hyperty://a.ex/{number}", REACH, "s", math.inf


def test_so_many_wait_for_one_target(cache):
    message = ask(1)
    first = [cache.wait(message, REACH) for _ in range(STUB_QUEUE - 1)]
    assert first == [True, *[False] * (STUB_QUEUE - 2)]
    assert not cache.is_full(message.to)
    cache.wait(message, REACH)
    assert cache.is_full(message.to)


def test_so_many_targets_are_waited_for(cache):
    targets = [f"hyperty://a.ex/{number}" for number in range(STUB_QUEUE + 1)]
    for to in targets[:-1]:
        assert not cache.is_full(to)
        assert cache.wait(ask(1, to=to), REACH)
    assert cache.is_full(targets[-1])
    assert not cache.is_full(targets[0])


def test_a_route_is_taken_until_its_time_is_over(cache):
    cache.keep("hyperty://a.ex/1", REACH, "s", 5.0)
    assert cache.find("hyperty://a.ex/1", REACH, 4.9) == "s"
    assert cache.find("hyperty://a.ex/1", REACH, 5.0) is None


def test_the_oldest_route_is_forgotten_when_there_are_too_many(cache):
    for number in range(4097):
        cache.keep(*route(number))
    assert cache.find(route(0)[0], REACH, 0.0) is None
    assert cache.find(route(4096)[0], REACH, 0.0) == "s"
