"""Cost of judging one message, against reading and writing the text of one message."""

import time
from statistics import median
from typing import Final, final

import attrs
import click

from actors.node.policy.engine import NodePolicies
from actors.node.policy_hook import PERMIT_ALL, Asker, Policy
from actors.policy.engine import PolicyEngine, Tasks
from actors.policy.store import PolicyConfig, PolicyStore
from bench.verdict import Verdict
from fsm.policy.attributes import Place
from fsm.policy.reading import read_set
from specs.identity import Identity
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType
from transports.codec import decode_frame, encode

REACH: Final = 2.0
"""Times the reading and writing of a message's text that a judgement by ten rules may take."""

_RULES: Final = (0, 1, 10, 100, 1000)
_DOMAIN: Final = "a.example"
_FROM: Final = f"hyperty://{_DOMAIN}/4f7b7c1e-8c1c-4f6e-9d7a-2f3b1c5d6e7f"
_TO: Final = f"hyperty://{_DOMAIN}/9a7b7c1e-8c1c-4f6e-9d7a-2f3b1c5d6e7f"
_MESSAGE: Final = Message(1, MessageType.CREATE, _FROM, _TO, {"value": {"number": 1}})
_ASKER: Final = Asker(
    f"hyperty-runtime://{_DOMAIN}/alice",
    Identity(user="user://idp.example/alice", issuer="https://idp.example", until=1e12),
)
_PER_SECOND: Final = 1e6


@final
@attrs.frozen
class Costs:
    """Microseconds of CPU time, each the median of several rounds.

    Attributes:
        text: Reading and writing the text of one message.
        nothing: Asking about one where there are no policies.
        judged: Judging one, by number of rules; the last of them decides.
    """

    text: float
    nothing: float
    judged: dict[int, float]


def measure(messages: int, rounds: int) -> Costs:
    """Measure everything by turns, so that a busy machine hits all."""
    engines = {number: _engine(number) for number in _RULES}
    found = [_round(engines, messages) for _ in range(rounds)]
    return Costs(
        median(one.text for one in found),
        median(one.nothing for one in found),
        {number: median(one.judged[number] for one in found) for number in _RULES},
    )


def _round(engines: dict[int, Policy], messages: int) -> Costs:
    judged = {
        number: _judging(engine, messages if number < max(_RULES) else messages // 10)
        for number, engine in engines.items()
    }
    return Costs(_text(messages), _judging(PERMIT_ALL, messages), judged)


def _engine(number: int) -> Policy:
    """Make an engine of typical rules, none of which applies to the message but the last."""
    store = PolicyStore(PolicyConfig(files=()))
    store.adopt(store.with_sets([read_set(_document(number), "bench")]))
    return NodePolicies(PolicyEngine(store, Tasks()), Place(_DOMAIN), lambda: 0.0)


def _document(number: int) -> JsonObject:
    rules: list[Json] = [_rule(place) for place in range(number - 1)]
    last: JsonObject = {
        "id": "last",
        "effect": "permit",
        "target": {"actionType": {"in": ["create"]}},
    }
    policy: JsonObject = {
        "id": "p",
        "ruleCombiningAlgorithm": "firstApplicable",
        "rules": [*rules, last] if number else [],
    }
    return {"id": "s", "policies": [policy]}


def _rule(place: int) -> JsonObject:
    """Return one of four kinds of rule, as operators write them."""
    conditions: list[JsonObject] = [
        {"srcSPDomain": {"equals": f"d{place}.example"}},
        {"msgTo": {"like": f"comm://*/{place}/*"}},
        {"srcIDPDomain": {"equals": "idp.example"}, "actionType": {"in": ["delete", "update"]}},
        {"srcUsername": {"equals": f"user{place}@idp.example"}},
    ]
    return {"id": f"r{place}", "effect": "deny", "condition": conditions[place % len(conditions)]}


def _judging(policy: Policy, messages: int) -> float:
    judge = policy.judge
    began = time.process_time()
    for _ in range(messages):
        judge(_MESSAGE, _ASKER)
    return (time.process_time() - began) / messages * _PER_SECOND


def _text(messages: int) -> float:
    line = encode(_MESSAGE)
    began = time.process_time()
    for _ in range(messages):
        for message in decode_frame(line):
            if isinstance(message, Message):
                encode(message)
    return (time.process_time() - began) / messages * _PER_SECOND


@click.command()
@click.option("--messages", default=20_000, show_default=True, help="Messages per round.")
@click.option("--rounds", default=5, show_default=True, help="Rounds; the median counts.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(messages: int, rounds: int, *, as_json: bool) -> None:
    """Measure a judgement; exit 1 if ten rules cost more than twice a message's text."""
    costs = measure(messages, rounds)
    ratio = costs.judged[10] / costs.text
    Verdict(
        bench="policy",
        what="us of CPU for a judgement by ten rules / for the text of a message, read and written",
        ours=costs.judged[10],
        peer=costs.text,
        ratio=ratio,
        reach=REACH,
        missed=() if ratio <= REACH else ("ten rules cost too much",),
        not_measured=("routing a message", "rules that ask for attributes of other domains"),
        figures={
            "no_policies_us": round(costs.nothing, 3),
            "judged_us": {number: round(one, 2) for number, one in costs.judged.items()},
        },
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
