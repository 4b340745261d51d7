"""The engine decides as a naive evaluator of the same documents: I-K1, I-K2, I-K3, S8."""

from collections.abc import Iterator
from random import Random

import attrs

from fsm.policy.attributes import Place, Request
from fsm.policy.explain import effective
from fsm.policy.model import Book
from fsm.policy.pdp import Pdp
from fsm.policy.reading import read_set
from fsm.policy.terms import Algorithm, Result
from specs.identity import Identity
from specs.message import Message, MessageType
from tests.fsm.policy.policy_random import random_case, random_set
from tests.fsm.policy.policy_reference import Case, Outcome, decide
from tests.support.chance import examples

BOOKS, CASES, ROUND = examples(800), 400, 25
"""A hundred thousand pairs: so many books, each held against so many of the messages."""


def request_of(case: Case) -> Request:
    raw = case.message
    message = Message(raw["id"], MessageType(raw["type"]), raw["from"], raw["to"], raw["body"])
    identity = None
    if case.user is not None:
        roles = frozenset(case.roles)
        identity = Identity(user=case.user, issuer=case.issuer, until=case.until, roles=roles)
    place = Place(case.domain, owns=lambda address, _: address in case.owned)
    return Request(message, case.runtime, identity, case.now, place)


def of_engine(engine: Pdp, case: Case) -> Outcome:
    verdict = engine.decide(request_of(case))
    tasks = tuple((task.do, task.name, task.is_advice) for task in verdict.tasks)
    result = effective(verdict, engine.book.default)
    return Outcome(str(result), verdict.path or "default", tasks)


@attrs.frozen
class Pair:
    """A book, and the messages it is held against."""

    documents: list[dict]
    combining: str
    default: str
    cases: list[Case]

    @property
    def engine(self) -> Pdp:
        sets = tuple(read_set(one, "test") for one in self.documents)
        algorithm, default = Algorithm(self.combining), Result(self.default)
        return Pdp(Book(sets=sets, combining=algorithm, default=default))

    def expected(self, case: Case) -> Outcome:
        return decide(case, self.documents, self.combining, self.default)


def pairs(seed: int, books: int) -> Iterator[Pair]:
    random = Random(seed)  # noqa: S311 - no secret
    cases = [random_case(random) for _ in range(CASES)]
    for _ in range(books):
        yield Pair(
            [random_set(random, n) for n in range(random.choice([1, 1, 2]))],
            random.choice([str(one) for one in Algorithm]),
            random.choice(["permit", "permit", "deny"]),
            random.sample(cases, ROUND),
        )


def test_the_pairs_are_about_everything():
    """They would say little if nearly all of them were decided by default."""
    seen = [pair.expected(case) for pair in pairs(1, 200) for case in pair.cases]
    by_policy = [one for one in seen if one.path != "default"]
    assert len(by_policy) > len(seen) / 3
    assert sum(one.decision == "permit" for one in by_policy) > len(by_policy) / 10
    assert sum(one.decision == "deny" for one in by_policy) > len(by_policy) / 3
    assert sum(bool(one.tasks) for one in by_policy) > len(by_policy) / 10


def test_a_request_gets_the_same_verdict_in_any_order_of_rules():
    for pair in pairs(2, 40):
        first, second = pair.engine, pair.engine
        there = [of_engine(first, case) for case in pair.cases]
        back = [of_engine(second, case) for case in reversed(pair.cases)]
        assert there == back[::-1]


# ---- an evaluator that is wrong is found


# fmt: on
