"""The capabilities of runtimes, which descriptors name as constraints (CAT-02..04, STB-12).

One table is the whole vocabulary. A runtime states its capabilities under `hypertyCapabilities` and
`protocolCapabilities`; a descriptor of a hyperty or stub says under `constraints` what it needs,
by the same names. A constraint that is not in the table is not met.
"""

import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from specs.jsonvalue import Json, JsonObject

_VERSION: Final = re.compile(r"\d{1,4}(\.\d{1,4}){0,2}")


class Form(Enum):
    """The form of a value, in words; and when a capability meets a constraint of this form."""

    FLAG = "true or false"
    """`true` needs `true`; `false` needs nothing."""

    AMOUNT = "a number"
    """At least so much."""

    VERSION = "a version such as 3.11"
    """This version or a newer one."""

    WORDS = "a list of words"
    """All of them."""

    def fits(self, value: Json) -> bool:
        """Return whether a value is of this form."""
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
"""Every capability by its name."""
# fmt: on


def unmet(constraints: Json, capabilities: JsonObject | None) -> str | None:
    """Return the first constraint that is not met, as half a sentence; None: all are met.

    Args:
        constraints: The constraints of a descriptor.
        capabilities: The capabilities of a runtime; None: it is only judged whether a runtime
            could meet the constraints.
    """
    if constraints is None:
        return None
    if not isinstance(constraints, dict):
        return "its constraints are no object with names of capabilities"
    found = (_unmet(name, value, capabilities) for name, value in sorted(constraints.items()))
    return next((why for why in found if why is not None), None)


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


def _is_met(form: Form, wanted: Json, had: Json) -> bool:
    if form is Form.FLAG and wanted is False:
        return True
    return form.fits(had) and _lesser(wanted, had) == wanted


def narrow(capabilities: JsonObject, declared: JsonObject) -> JsonObject:
    """Return the capabilities that a runtime has, without those that its descriptor denies.

    What the descriptor does not mention stays; a value of another form denies the capability.

    Args:
        capabilities: What the runtime can do.
        declared: What its descriptor says.
    """
    return {
        name: _both(CAPABILITIES[name][0], had, declared[name]) if name in declared else had
        for name, had in capabilities.items()
    }


def _both(form: Form, had: Json, declared: Json) -> Json:
    return _lesser(had, declared) if form.fits(declared) else None


def _lesser(one: Json, other: Json) -> Json:
    """Return what is met by both values of a form; `one`, if the other has at least that."""
    match one, other:
        case bool(), bool():
            return one and other
        case str(), str():
            return one if _number(one) <= _number(other) else other
        case list(), list():
            return [word for word in one if word in other]
        case int() | float(), int() | float():
            return min(one, other)
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
