"""The golden scenarios, step by step, with a node's own addresses in place of theirs."""

import json
from pathlib import Path

from specs.trace import ABSENT
from tests.support.node.node_peer import Peer, plain
from transports.codec import decode_frame, encode

SCENARIOS = Path(__file__).parents[2] / "fixtures" / "golden-steps.jsonl"


def steps(scenario: str) -> dict[int, dict]:
    """Return the lines of a scenario by number."""
    lines = map(json.loads, SCENARIOS.read_text().splitlines())
    return {line["n"]: line for line in lines if line["sc"] == scenario}


class Score:
    """One scenario being played.

    Attributes:
        names: What the node calls an address, by what the scenario calls it.
    """

    def __init__(self, scenario: str) -> None:
        self.steps = steps(scenario)
        self.names: dict[str, str] = {}

    async def sends(self, peer: Peer, n: int) -> None:
        """Have a peer send the message of a step."""
        text = json.dumps(self.steps[n]["msg"])
        for golden, actual in self.names.items():
            text = text.replace(golden, actual)
        (message,) = decode_frame(text.encode())
        await peer.link.send(encode(message))

    async def hears(self, peer: Peer, n: int, *, ignoring: str = "via") -> None:
        """Check that what a peer hears next is the message of a step."""
        heard = self.reported(plain(await peer.hear()))
        expected = self.steps[n]["msg"]
        expected["body"].pop(ignoring, None)
        assert heard == expected

    def reported(self, value: object) -> object:
        """Return something in the scenario's words."""
        text = json.dumps(value)
        for golden, actual in self.names.items():
            text = text.replace(actual, golden)
        return json.loads(text)

    def states(self, machine: str) -> list[tuple[str, str, str]]:
        """Return the scenario's steps of a machine: key without the node, old, new."""
        return [
            (one["key"].rpartition("|")[2], one["old"] or ABSENT, one["new"])
            for one in self.steps.values()
            if one["k"] == "state" and one["machine"] == machine
        ]
