"""Names of a scenario and names of the actors, and the comparison of values by them.

A scenario names addresses that only the actors can choose: those a message node
allocates, the numbers of stubs and connections, ids of messages, tokens. Each of
its names is bound to what was observed in its place, once, and nothing observed stands
for two names. Everything else is called the same by both: schemes, domains, runtimes
and their parts.

The scenario's value must be contained in the observed one: more keys may be there, lists
are of the same length. A scenario cannot foresee everything; this is compared by kind only:

- the `description` of a message is a sentence for people: there must be one;
- what stands in a catalogue is named by its path: each domain has a catalogue;
- tokens and secrets are the actors' own: each of the scenario's stands for one of theirs;
- what a transport offers (`candidates`, `iceCandidates`, `sdp`) depends on the transport, and so
  does whether it offers any of it;
- the paths of an object's children stand beside those of its changes: where a scenario
  lists paths and mentions no children, those that are there are passed over;
- versions of an object count its changes: each of the scenario's stands for one of
  theirs, and they grow alike.
"""

import re
from collections.abc import Iterator
from typing import Final, final

import attrs

from specs.addresses.address import runtime_of, scheme_of
from specs.child import parent_of
from specs.jsonvalue import Json, JsonObject
from specs.message import Message

_PART: Final = re.compile(r"[/#]?[^/#]+")

_FIXED: Final = frozenset({"domain", "global", "hyperty-catalogue", "hyperty-runtime", "user"})
"""Schemes whose names are not made up by the actors."""

_FIXED_PREFIXES: Final = ("domain-", "user-")


@final
@attrs.define(eq=False)
class Names:
    """A correspondence between a scenario's names and the actors'; one to one.

    Attributes:
        to_actual: The actors' addresses by the scenario's.
        to_golden: The reverse.
        numbers: The actors' numbers, by counting component and number in the scenario.
    """

    numbers: dict[str, dict[int, int]] = attrs.field(factory=dict)
    to_actual: dict[str, str] = attrs.field(factory=dict)
    to_golden: dict[str, str] = attrs.field(factory=dict)

    def copy(self) -> "Names":
        """Return a second correspondence that holds the same, to try something with."""
        numbers = {who: dict(known) for who, known in self.numbers.items()}
        return Names(numbers, dict(self.to_actual), dict(self.to_golden))

    def take(self, other: "Names") -> None:
        """Take over all that another correspondence holds: an attempt went well."""
        self.numbers, self.to_actual, self.to_golden = (
            other.numbers,
            other.to_actual,
            other.to_golden,
        )

    # ---- binding

    def bind(self, golden: str, actual: str) -> bool:
        """Let a name stand for something observed; return whether it may.

        It may not if one of the two stands for something else already. What is below
        an address follows it: `O/changes` needs no binding of its own.

        Args:
            golden: Value of the scenario.
            actual: Observed value.
        """
        known = self.to_actual.get(golden)
        if known is not None:
            return known == actual
        if actual in self.to_golden:
            return False
        self.to_actual[golden] = actual
        self.to_golden[actual] = golden
        return True

    def unify(self, golden: str, actual: str) -> bool:
        """Return whether an address observed can be the scenario's; bind what is new in it.

        Part by part: parts are equal, or both are numbers, or both are what a node
        allocates, the first part behind the domain. A failed attempt may leave
        bindings behind: try with a copy.

        Args:
            golden: Value of the scenario.
            actual: Observed value.
        """
        ours, theirs = list(_prefixes(golden)), list(_prefixes(actual))
        if len(ours) != len(theirs):
            return False
        for depth, (name, seen) in enumerate(zip(ours, theirs, strict=True)):
            known = self.to_actual.get(name)
            if known is not None:
                if known != seen:
                    return False
            elif not self._extend(depth, name, seen):
                return False
        return True

    def _extend(self, depth: int, golden: str, actual: str) -> bool:
        if not depth:
            # Scheme and domain cannot be chosen.
            return golden == actual
        mine, theirs = _last_part(golden), _last_part(actual)
        if not self._is_made_up(depth, golden, mine, theirs):
            # What is named alike is only bound if it might have been named otherwise.
            return mine == theirs
        return self.bind(golden, actual)

    @staticmethod
    def _is_made_up(depth: int, golden: str, mine: str, theirs: str) -> bool:
        if mine.isdecimal() and theirs.isdecimal():
            return True
        scheme = scheme_of(golden)
        is_fixed = scheme in _FIXED or scheme.startswith(_FIXED_PREFIXES)
        return depth == 1 and not is_fixed

    def unify_id(self, sender: str, golden: int, actual: int) -> bool:
        """Return whether a number observed can be the scenario's; bind it if it is new.

        Numbers of one sender grow alike (MSG-03): a larger one stands for a larger one.

        Args:
            sender: Counting component, as the scenario calls it: for ids the sender or,
                for an answer, the requester; for versions the object.
            golden: The scenario's number.
            actual: The one observed.
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

    # ---- translating

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
        """Translate every text in a value observed."""
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


def _last_part(address: str) -> str:
    return re.split("[/#]", address)[-1]


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


_SENTENCE: Final = "description"
_OFFERED: Final = frozenset({"candidates", "iceCandidates", "sdp"})
_OWN: Final = frozenset({"runtimeToken", "secret", "token"})
_VERSION: Final = "version"
_CATALOGUE: Final = "hyperty-catalogue"
_NESTED: Final = frozenset({"id", "type", "from", "to"})


_VIA: Final = "via"


def says_the_same(golden: Message, seen: Message, names: Names) -> bool:
    """Return whether a message says what the scenario's does; the routes may differ.

    Args:
        golden: The scenario's.
        seen: The one that was seen.
        names: Spoilt by a failed attempt: give a copy.
    """
    body = {key: value for key, value in golden.body.items() if key != _VIA}
    return Content(names, _subject(golden)).body_holds(body, seen.body)


def _subject(message: Message) -> str:
    """Return the object whose versions a message has."""
    value = message.body.get("value")
    url = value.get("url") if isinstance(value, dict) else None
    return url if isinstance(url, str) else runtime_of(message.from_)


@final
@attrs.frozen
class Content:
    """Compares values, binding names as it goes: give it a copy of what may be spoilt.

    Attributes:
        names: What the scenario's names stand for.
        subject: Whose versions are meant: the object the message is about.
    """

    names: Names
    subject: str = ""

    def holds(self, golden: Json, seen: Json) -> bool:
        """Return whether a value of the scenario is contained in one that was seen.

        Args:
            golden: Value of the scenario.
            seen: Observed value.
        """
        match golden:
            case dict():
                return isinstance(seen, dict) and self._object(golden, seen)
            case list():
                return isinstance(seen, list) and self._list(golden, seen)
            case str():
                return isinstance(seen, str) and self._text(golden, seen)
            case bool() | None:
                return golden is seen
            case _:
                return not isinstance(seen, bool) and golden == seen

    def body_holds(self, golden: JsonObject, seen: JsonObject) -> bool:
        """Return whether the body of a message of the scenario is contained in a seen one.

        Args:
            golden: Value of the scenario.
            seen: Observed value.
        """
        expected = {key: value for key, value in golden.items() if key != _SENTENCE}
        sentence = seen.get(_SENTENCE)
        is_said = _SENTENCE not in golden or (isinstance(sentence, str) and sentence != "")
        return is_said and self.holds(expected, seen)

    def _object(self, golden: JsonObject, seen: JsonObject) -> bool:
        if golden.keys() >= _NESTED and not self._numbered(golden, seen):
            return False
        skipped = set(_OFFERED)
        if golden.keys() >= _NESTED:
            skipped.add("id")
        if {golden.get("attribute"), seen.get("attribute")} <= _OFFERED:
            skipped |= {"attribute", "value"}
        return all(
            key in seen and self._field(key, value, seen[key])
            for key, value in golden.items()
            if key not in skipped
        )

    def _numbered(self, golden: JsonObject, seen: JsonObject) -> bool:
        """Compare the ids of messages that stand in messages."""
        sender, mine, theirs = golden["from"], golden["id"], seen.get("id")
        if not isinstance(sender, str) or not isinstance(mine, int) or not isinstance(theirs, int):
            return False
        return self.names.unify_id(sender, mine, theirs)

    def _field(self, key: str, golden: Json, seen: Json) -> bool:
        if key in _OWN and isinstance(golden, str) and isinstance(seen, str):
            return self.names.bind(golden, seen)
        if key == _VERSION and isinstance(golden, int) and isinstance(seen, int):
            return self.names.unify_id(f"versions of {self.subject}", golden, seen)
        return self.holds(golden, seen)

    def _list(self, golden: list[Json], seen: list[Json]) -> bool:
        if not any(map(_is_of_children, golden)):
            seen = [one for one in seen if not _is_of_children(one)]
        return len(golden) == len(seen) and all(
            self.holds(mine, theirs) for mine, theirs in zip(golden, seen, strict=True)
        )

    def _text(self, golden: str, seen: str) -> bool:
        if "://" not in golden:
            return golden == seen
        if golden.startswith(_CATALOGUE):
            return _path(golden) == _path(seen)
        return self.names.unify(golden, seen)


def _is_of_children(value: Json) -> bool:
    return isinstance(value, str) and parent_of(value) is not None


def _path(address: str) -> str:
    return address.partition("://")[2].partition("/")[2]
