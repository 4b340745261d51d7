"""The options that a profile may set for a shipped stub, beside its URL."""

from collections.abc import Mapping
from typing import final

from specs.errors import ProtoflyError
from specs.jsonvalue import JsonObject

__all__ = ["StubOptionError", "read_options"]


@final
class StubOptionError(ProtoflyError):
    """A profile sets an option that its stub does not know: the profile must be corrected.

    Attributes:
        stub: Name of the stub.
        option: Name of the option.
    """

    def __init__(self, stub: str, option: str, reason: str) -> None:
        super().__init__(f"the stub {stub} cannot be configured: {reason}")
        self.stub = stub
        self.option = option


def read_options(
    stub: str, options: JsonObject, known: Mapping[str, tuple[str, ...]]
) -> Mapping[str, str]:
    """Return the value of each known option.

    Args:
        stub: Name of the stub, for errors.
        options: The options of the profile.
        known: The allowed values of each option; the first is the default.

    Raises:
        StubOptionError: An option, or its value, is not known.
    """
    for name in options:
        if name not in known:
            names = f"there are {_listed(known)}" if known else "there are none"
            raise StubOptionError(stub, name, f"there is no option {name!r}; {names}")
    chosen: dict[str, str] = {}
    for name, words in known.items():
        value = options.get(name, words[0])
        if not isinstance(value, str) or value not in words:
            reason = f"the option {name!r} is {value!r}; it can be {_listed(words)}"
            raise StubOptionError(stub, name, reason)
        chosen[name] = value
    return chosen


def _listed(words: Mapping[str, object] | tuple[str, ...]) -> str:
    return " or ".join(repr(word) for word in words)
