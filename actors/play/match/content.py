"""Whether what a message or row says is what the scenario says.

The scenario's value must be contained in the one seen: more keys may be there, lists
are of the same length. Addresses are compared by their bindings (`Names`). A
scenario cannot foresee everything; this is compared by kind only:

- the `description` of a message is a sentence for people: there must be one;
- what stands in a catalogue is named by its path: each domain has a catalogue;
- tokens and secrets are the actors' own: each of the scenario's stands for one of theirs;
- what a transport offers (`iceCandidates`, `sdp`) depends on the transport, and so
  does whether it offers any of it;
- the paths of an object's children stand beside those of its changes: where a scenario
  lists paths and tells of no children, those that are there are passed over;
- versions of an object count its changes: each of the scenario's stands for one of
  theirs, and they grow alike.
"""

from typing import Final, final

import attrs

from actors.play.match.names import Names
from specs.addresses.address import runtime_of
from specs.child import parent_of
from specs.jsonvalue import Json, JsonObject
from specs.message import Message

__all__ = ["Content", "says_the_same"]

_SENTENCE: Final = "description"
_OFFERED: Final = frozenset({"iceCandidates", "sdp"})
_OWN: Final = frozenset({"runtimeToken", "secret", "token"})
_VERSION: Final = "version"
_CATALOGUE: Final = "hyperty-catalogue"
_NESTED: Final = frozenset({"id", "type", "from", "to"})


_VIA: Final = "via"


def says_the_same(golden: Message, seen: Message, names: Names) -> bool:
    """Tell whether a message says what the scenario's does; the ways may differ.

    Args:
        golden: The scenario's.
        seen: The one that was seen.
        names: Spoilt by a failed attempt: give a copy.
    """
    body = {key: value for key, value in golden.body.items() if key != _VIA}
    return Content(names, _subject(golden)).body_holds(body, seen.body)


def _subject(message: Message) -> str:
    """Return the object whose versions a message tells."""
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
        """Tell whether a value of the scenario is contained in one that was seen."""
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
        """Tell whether the body of a message of the scenario is contained in one that was seen."""
        told = {key: value for key, value in golden.items() if key != _SENTENCE}
        sentence = seen.get(_SENTENCE)
        is_said = _SENTENCE not in golden or (isinstance(sentence, str) and sentence != "")
        return is_said and self.holds(told, seen)

    def _object(self, golden: JsonObject, seen: JsonObject) -> bool:
        if golden.keys() >= _NESTED and not self._numbered(golden, seen):
            return False
        skipped = set(_OFFERED)
        if golden.keys() >= _NESTED:
            skipped.add("id")
        if golden.get("attribute") in _OFFERED:
            skipped.add("value")
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
