"""What the buses of a scenario forbid, and the policies that do it."""

from collections.abc import Iterable, Iterator
from typing import Final, final

from typing_extensions import override

from actors.node.policy import Asker, Decision, Ruling
from actors.node.policy import Policy as NodePolicy
from actors.play.atlas import Atlas
from actors.play.names import Names
from actors.play.roles import Denial
from actors.play.script import AuthzStep, MessageStep, Scenario
from actors.runtime.policy import Policy as RuntimePolicy
from specs.message import Message

__all__ = ["NodeDenials", "RuntimeDenials", "denials_of"]

_POLICY: Final = "scenario"


def denials_of(scenario: Scenario, atlas: Atlas) -> Iterator[Denial]:
    """Yield what the policies of a scenario forbid: denials whose reason speaks of a policy."""
    for ruling in scenario.steps:
        if not isinstance(ruling, AuthzStep) or ruling.decision != "deny":
            continue
        denied, at = scenario.step(ruling.ref), atlas.of(ruling.at)
        if "policy" in ruling.why and isinstance(denied, MessageStep) and at is not None:
            message = denied.message
            why = _refusal(scenario, denied) or ruling.why
            yield Denial(at, message.type, message.from_, message.to, why)


def _refusal(scenario: Scenario, denied: MessageStep) -> str | None:
    """Return the words with which a message is refused in the scenario."""
    asked = denied.message
    for step in scenario.steps:
        if not isinstance(step, MessageStep) or step.number < denied.number:
            continue
        answer = step.message
        if answer.is_response and (answer.id, answer.to) == (asked.id, asked.from_):
            why = answer.body.get("description")
            return why if isinstance(why, str) else None
    return None


@final
class RuntimeDenials(RuntimePolicy):
    """The policy of a runtime's bus."""

    def __init__(self, denials: Iterable[Denial], names: Names) -> None:
        self._denials = tuple(denials)
        self._names = names

    @override
    def refusal(self, message: Message, by: str) -> str | None:
        return _why(self._denials, self._names, message)


@final
class NodeDenials(NodePolicy):
    """The policy of a node's bus."""

    def __init__(self, denials: Iterable[Denial], names: Names) -> None:
        self._denials = tuple(denials)
        self._names = names

    @override
    def judge(self, message: Message, asker: Asker) -> Ruling:
        why = _why(self._denials, self._names, message)
        if why is None:
            return Ruling(Decision.PERMIT, _POLICY)
        return Ruling(Decision.DENY, _POLICY, why)


def _why(denials: Iterable[Denial], names: Names, message: Message) -> str | None:
    ends = (message.type, names.golden(message.from_), names.golden(message.to))
    return next((one.why for one in denials if (one.type, one.from_, one.to) == ends), None)
