"""What a declarative profile may say of a stub that ships, beyond where it dials."""

from collections.abc import Mapping
from typing import final

from specs.errors import ProtoflyError
from specs.jsonvalue import JsonObject

__all__ = ["StubOptionError", "read_options"]


@final
class StubOptionError(ProtoflyError):
    """A profile says of a stub what the stub does not know: the profile is wrong.

    Attributes:
        stub: Name of the stub.
        option: Which option.
    """

    def __init__(self, stub: str, option: str, reason: str) -> None:
        super().__init__(f"the stub {stub} cannot be configured: {reason}")
        self.stub = stub
        self.option = option


def read_options(
    stub: str, options: JsonObject, known: Mapping[str, tuple[str, ...]]
) -> Mapping[str, str]:
    """Return a word for every option that is known.

    Args:
        stub: Name of the stub, for errors.
        options: As the profile has them.
        known: The words each option may have; the first holds where nothing is said.

    Raises:
        StubOptionError: There is no such option, or no such word.
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
