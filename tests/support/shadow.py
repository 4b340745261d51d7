"""The shadow of real cores in a composition: each of their steps must be one of its steps."""

from collections.abc import Mapping, Sequence

from fsm.product.encoding import State
from fsm.product.steps import Steps


class Shadow:
    """Follows cores through the states of a composition.

    A step of the cores may be nothing in the composition, which leaves things out, or two
    steps of it, where it lets happen between what the core does at once.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._code = steps.encoding
        self.state = self._code.start

    def follow(self, told: Mapping[str, str], under_way: Mapping[str, Sequence[str]]) -> None:
        """Go where the cores have gone.

        Raises:
            AssertionError: The composition does not go there.
        """
        wanted = self._state(told, under_way)
        now = {self.state}
        for _ in range(3):
            if wanted in now:
                self.state = wanted
                return
            now |= {step[3] for state in now for step in self._steps.of(state)[0]}
        before, after = self._code.told(self.state), self._code.told(wanted)
        changed = {
            name: (before[name], after[name]) for name in before if before[name] != after[name]
        }
        raise AssertionError(
            f"no step of the composition does this: {changed}, "
            f"channels {self._code.under_way(self.state)} -> {self._code.under_way(wanted)}"
        )

    def _state(self, told: Mapping[str, str], under_way: Mapping[str, Sequence[str]]) -> State:
        state = list(self._code.start)
        for name, value in told.items():
            state[self._code.place[name]] = self._code.number(name, value)
        for name, messages in under_way.items():
            content = 0
            for message in messages:
                content = self._code.contents.push(content, self._code.message(message))
            state[self._code.place[name]] = content
        return tuple(state)
