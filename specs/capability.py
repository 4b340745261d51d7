"""Compare the capabilities of a runtime with the constraints of code (CAT-02..04, STB-12).

A table lists all capabilities. The descriptor of a runtime states the runtime's capabilities under
`hypertyCapabilities` and `protocolCapabilities`; the descriptor of a hyperty or stub states its
needs under `constraints`, by the same names. A constraint that is not in the table is not met.
"""

import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from specs.jsonvalue import Json, JsonObject

_VERSION: Final = re.compile(r"\d{1,4}(\.\d{1,4}){0,2}")


class Form(Enum):
    """Forms of the value of a capability; each decides when a capability meets a constraint."""

    FLAG = "true or false"
    """A truth value: the constraint `true` requires the capability `true`."""

    AMOUNT = "a number"
    """A number: the capability must be at least as large."""

    VERSION = "a version such as 3.11"
    """A version: the capability must be this version or a newer one."""

    WORDS = "a list of words"
    """A list: the capability must contain all elements."""

    def fits(self, value: Json) -> bool:
        """Return whether a value has this form."""
        match self:
            case Form.FLAG:
                return isinstance(value, bool)
            case Form.AMOUNT:
                if isinstance(value, bool):
                    return False
                return isinstance(value, int | float) and value >= 0
            case Form.VERSION:
                return isinstance(value, str) and _VERSION.fullmatch(value) is not None
            case Form.WORDS:
                return isinstance(value, list) and all(isinstance(each, str) for each in value)


# fmt: off
CAPABILITIES: Final[Mapping[str, tuple[Form, str]]] = MappingProxyType(
    {
        "python":        (Form.VERSION, "version of Python"),
        "memory":        (Form.AMOUNT, "address space of a component, in MiB"),
        "sandbox":       (Form.FLAG, "code runs in a sandbox process of its own"),
        "network":       (Form.FLAG, "code dials its endpoints"),
        "files":         (Form.FLAG, "code reads and writes files"),
        "distributions": (Form.WORDS, "distributions of Python that code can import"),
        "dataObjects":   (Form.FLAG, "code reports and observes data objects"),
        "storedObjects": (Form.FLAG, "data objects outlive the process of the runtime"),
        "directLinks":   (Form.WORDS, "transports of direct links to other runtimes"),
        "transports":    (Form.WORDS, "transports that stubs dial"),
        "stubs":         (Form.WORDS, "stubs that ship with the runtime"),
    }
)
"""For every capability, by its name: the form of its value, and its meaning for people."""
# fmt: on


def unmet(constraints: Json, capabilities: JsonObject | None) -> str | None:
    """Return which constraint a runtime does not meet, as half a sentence, or None if it meets all.

    Args:
        constraints: The constraints of a descriptor.
        capabilities: The capabilities of the runtime; None: check only that the constraints are
            known and well formed.
    """
    if constraints is None:
        return None
    if not isinstance(constraints, dict):
        return "its constraints are no object with names of capabilities"
    reasons = (_unmet(name, value, capabilities) for name, value in sorted(constraints.items()))
    return next((why for why in reasons if why is not None), None)


def _unmet(name: str, wanted: Json, capabilities: JsonObject | None) -> str | None:
    known = CAPABILITIES.get(name)
    if known is None:
        return f"its constraint {name[:40]!r} is unknown"
    form, _ = known
    if not form.fits(wanted):
        return f"its constraint {name!r} is not {form.value}"
    if capabilities is None or _is_met(form, wanted, capabilities.get(name)):
        return None
    needs = name if wanted is True else f"{name} {_in_words(wanted)}"
    return f"it needs {needs}, and this runtime has {_in_words(capabilities.get(name))}"


def _is_met(form: Form, wanted: Json, capability: Json) -> bool:
    if form is Form.FLAG and wanted is False:
        return True
    return form.fits(capability) and _lesser(wanted, capability) == wanted


def narrow(capabilities: JsonObject, declared: JsonObject) -> JsonObject:
    """Return the capabilities of a runtime, reduced to those that its descriptor declares.

    A capability that the descriptor does not mention stays; one with an invalid value is removed.

    Args:
        capabilities: The runtime's capabilities.
        declared: The capabilities in its descriptor.
    """
    return {
        name: _both(CAPABILITIES[name][0], had, declared[name]) if name in declared else had
        for name, had in capabilities.items()
    }


def _both(form: Form, capability: Json, declared: Json) -> Json:
    return _lesser(capability, declared) if form.fits(declared) else None


def _lesser(first: Json, second: Json) -> Json:
    """Return what two values of a capability have in common, such as the smaller number."""
    match first, second:
        case bool(), bool():
            return first and second
        case str(), str():
            return first if _number(first) <= _number(second) else second
        case list(), list():
            return [word for word in first if word in second]
        case int() | float(), int() | float():
            return min(first, second)
        case _:
            return None


def _number(version: str) -> tuple[int, ...]:
    parts = tuple(map(int, version.split(".")))
    return (*parts, 0, 0)[:3]


def _in_words(value: Json) -> str:
    match value:
        case None | [] | False:
            return "none"
        case list():
            return ", ".join(map(str, value))[:200]
        case _:
            return str(value)[:40]
