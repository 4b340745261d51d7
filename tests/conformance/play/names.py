"""Names of a scenario and names of the actors, and the comparison of values by them.

A scenario names what only the actors can choose: addresses that a node allocates, numbers of stubs
and connections, ids, tokens. Each name is bound to what was seen in its place, once, and nothing
seen stands for two names. All else is called the same by both.

The scenario's value must be contained in the one that was seen: more keys may be there, lists are
of the same length. By kind only are compared: the `description` of a message (there must be one),
addresses in a catalogue (by their path), tokens and secrets (each stands for one of the actors'),
what a transport offers, and versions of an object (they grow alike). Where a scenario lists paths
and mentions no children of objects, those that are there are passed over.
"""

import re
from collections.abc import Iterator
from typing import Final

import attrs

from specs.addresses.address import runtime_of, scheme_of
from specs.child import parent_of
from specs.jsonvalue import Json, JsonObject
from specs.message import Message

_PART: Final = re.compile(r"[/#]?[^/#]+")
_FIXED: Final = frozenset({"domain", "global", "hyperty-catalogue", "hyperty-runtime", "user"})
"""Schemes whose names are not made up by the actors; so are those that begin with these."""
_FIXED_PREFIXES: Final = ("domain-", "user-")
_OFFERED: Final = frozenset({"candidates", "iceCandidates", "sdp"})
_OWN: Final = frozenset({"runtimeToken", "secret", "token"})
_ENVELOPE: Final = frozenset({"id", "type", "from", "to"})


@attrs.define(eq=False)
class Names:
    """A correspondence between a scenario's names and the actors', one to one.

    A failed attempt may leave bindings behind: try with a copy.

    Attributes:
        numbers: The actors' numbers, by counting component and number in the scenario.
        to_actual: The actors' names by the scenario's.
        to_golden: The reverse.
    """

    numbers: dict[str, dict[int, int]] = attrs.field(factory=dict)
    to_actual: dict[str, str] = attrs.field(factory=dict)
    to_golden: dict[str, str] = attrs.field(factory=dict)

    def copy(self) -> "Names":
        numbers = {who: dict(known) for who, known in self.numbers.items()}
        return Names(numbers, dict(self.to_actual), dict(self.to_golden))

    def take(self, other: "Names") -> None:
        """Take over all that another correspondence holds: an attempt went well."""
        self.numbers, self.to_actual = other.numbers, other.to_actual
        self.to_golden = other.to_golden

    def bind(self, golden: str, actual: str) -> bool:
        """Let a name stand for something seen; return whether it may."""
        if golden in self.to_actual or actual in self.to_golden:
            return self.to_actual.get(golden) == actual
        self.to_actual[golden] = actual
        self.to_golden[actual] = golden
        return True

    def unify(self, golden: str, actual: str) -> bool:
        """Return whether an address that was seen can be the scenario's; bind what is new in it.

        Part by part: parts are equal, or both are numbers, or both are what a node allocates, the
        first part behind the domain.
        """
        ours, theirs = list(_prefixes(golden)), list(_prefixes(actual))
        if len(ours) != len(theirs):
            return False
        for depth, (name, seen) in enumerate(zip(ours, theirs, strict=True)):
            if name in self.to_actual:
                if self.to_actual[name] != seen:
                    return False
            elif not self._extend(depth, name, seen):
                return False
        return True

    def _extend(self, depth: int, golden: str, actual: str) -> bool:
        mine, theirs = (re.split("[/#]", one)[-1] for one in (golden, actual))
        scheme = scheme_of(golden)
        is_fixed = scheme in _FIXED or scheme.startswith(_FIXED_PREFIXES)
        if depth and ((mine.isdecimal() and theirs.isdecimal()) or (depth == 1 and not is_fixed)):
            return self.bind(golden, actual)
        return mine == theirs if depth else golden == actual

    def unify_id(self, sender: str, golden: int, actual: int) -> bool:
        """Return whether a number that was seen can be the scenario's; bind it if it is new.

        Numbers of one component grow alike (MSG-03).
        """
        known = self.numbers.setdefault(sender, {})
        if golden in known:
            return known[golden] == actual
        if any((one < golden) is not (seen < actual) for one, seen in known.items()):
            return False
        if actual in known.values():
            return False
        known[golden] = actual
        return True

    def actual(self, golden: str) -> str:
        """Say what the actors call an address; as it is if nothing of it is bound."""
        return _translated(golden, self.to_actual)

    def golden(self, actual: str) -> str:
        """Say what the scenario calls an address; as it is if nothing of it is bound."""
        return _translated(actual, self.to_golden)

    def in_actual(self, value: Json) -> Json:
        """Translate every text in a value of the scenario."""
        return _mapped(value, self.to_actual)

    def in_golden(self, value: Json) -> Json:
        """Translate every text in a value that was seen."""
        return _mapped(value, self.to_golden)


def _prefixes(address: str) -> Iterator[str]:
    """Yield scheme and domain, then one part more each time."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        yield address
        return
    grown = f"{scheme}://"
    for part in _PART.findall(rest):
        grown += part
        yield grown


def _translated(text: str, known: dict[str, str]) -> str:
    """Replace the longest known prefix."""
    for prefix in reversed(list(_prefixes(text))):
        if prefix in known:
            return known[prefix] + text[len(prefix) :]
    return text


def _mapped(value: Json, known: dict[str, str]) -> Json:
    match value:
        case str():
            return _translated(value, known)
        case list():
            return [_mapped(one, known) for one in value]
        case dict():
            return {key: _mapped(one, known) for key, one in value.items()}
        case _:
            return value


def says_the_same(golden: Message, seen: Message, names: Names) -> bool:
    """Return whether a message says what the scenario's does; the routes may differ."""
    expected = {key: one for key, one in golden.body.items() if key not in {"via", "description"}}
    sentence = seen.body.get("description")
    if "description" in golden.body and (not isinstance(sentence, str) or not sentence):
        return False
    value = golden.body.get("value")
    url = value.get("url") if isinstance(value, dict) else None
    subject = url if isinstance(url, str) else runtime_of(golden.from_)
    return holds(expected, seen.body, names, subject)


def holds(golden: Json, seen: Json, names: Names, subject: str = "") -> bool:
    """Return whether a value of the scenario is contained in one that was seen.

    Args:
        subject: The object whose versions are meant.
    """
    match golden:
        case dict():
            return isinstance(seen, dict) and _object_holds(golden, seen, names, subject)
        case list() if isinstance(seen, list):
            if not any(map(_is_of_children, golden)):
                seen = [one for one in seen if not _is_of_children(one)]
            return len(golden) == len(seen) and all(
                holds(mine, theirs, names, subject)
                for mine, theirs in zip(golden, seen, strict=True)
            )
        case str() if "://" in golden and isinstance(seen, str):
            if golden.startswith("hyperty-catalogue"):
                return _path(golden) == _path(seen)
            return names.unify(golden, seen)
        case bool() | None:
            return golden is seen
        case _:
            return not isinstance(seen, bool) and golden == seen


def _object_holds(golden: JsonObject, seen: JsonObject, names: Names, subject: str) -> bool:
    skipped = set(_OFFERED)
    if golden.keys() >= _ENVELOPE:
        # A message in a message.
        skipped.add("id")
        if not names.unify_id(golden["from"], golden["id"], seen.get("id", 0)):
            return False
    if {golden.get("attribute"), seen.get("attribute")} <= _OFFERED:
        skipped |= {"attribute", "value"}
    for key, value in golden.items():
        if key in skipped:
            continue
        if key not in seen:
            return False
        theirs = seen[key]
        if key in _OWN and isinstance(value, str) and isinstance(theirs, str):
            is_same = names.bind(value, theirs)
        elif key == "version" and isinstance(value, int) and isinstance(theirs, int):
            is_same = names.unify_id(f"versions of {subject}", value, theirs)
        else:
            is_same = holds(value, theirs, names, subject)
        if not is_same:
            return False
    return True


def _is_of_children(value: Json) -> bool:
    return isinstance(value, str) and parent_of(value) is not None


def _path(address: str) -> str:
    return address.partition("://")[2].partition("/")[2]
