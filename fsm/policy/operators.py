"""Operators of conditions: which attributes have them, and how they compare values (POL-10).

Parameters are checked once, when a policy is loaded: an operator that an attribute does not have,
or a parameter that can never equal its value, is refused then. For a message, only an attribute can
be missing.

In a pattern of `like`, `*` matches any text, and no other character is special. The matcher
searches each piece between two stars once, from the end of the previous piece, so its time is
linear in the length of the text for every pattern.
"""

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Final, TypeAlias

import attrs

from fsm.policy.attributes import Attribute, Form, Value
from fsm.policy.page import is_number
from fsm.policy.terms import Operator
from specs.addresses.address import SCHEME_ALIASES, canonical
from specs.errors import BadUrlError
from specs.limits.node import MAX_POLICY_TEXT

_ANY = "*"


@attrs.frozen(slots=True)
class Pattern:
    """Pattern of the operator `like`, split at its stars.

    Attributes:
        head: The beginning of the text; the whole text if there is no star.
        middle: The pieces that must follow, in this order.
        tail: The end of the text; None: there is no star.
    """

    head: str
    middle: tuple[str, ...]
    tail: str | None

    @classmethod
    def read(cls, text: str) -> "Pattern":
        """Split a pattern at its stars."""
        head, *rest = text.split(_ANY)
        if not rest:
            return cls(head, (), None)
        return cls(head, tuple(each for each in rest[:-1] if each), rest[-1])

    def fits(self, text: str) -> bool:
        """Return whether a whole text matches the pattern."""
        if self.tail is None:
            return text == self.head
        end = len(text) - len(self.tail)
        start = len(self.head)
        if end < start or not text.startswith(self.head) or not text.endswith(self.tail):
            return False
        for piece in self.middle:
            start = text.find(piece, start, end)
            if start < 0:
                return False
            start += len(piece)
        return True


Test: TypeAlias = Callable[[Value], bool]
"""Function that returns whether a value of an attribute passes an operator with its parameters."""

_EXACT: Final = (Operator.EQUALS, Operator.IN)
_ORDER: Final = (Operator.MORE_THAN, Operator.LESS_THAN, Operator.BETWEEN)
_TEXT: Final = (*_EXACT, Operator.LIKE)

OPERATORS: Final = {
    Form.TEXT: _TEXT,
    Form.ADDRESS: _TEXT,
    Form.DOMAIN: _TEXT,
    Form.SCHEME: _TEXT,
    Form.WORD: _TEXT,
    Form.NUMBER: (*_EXACT, *_ORDER),
    Form.TRUTH: _EXACT,
    Form.TIME: (*_TEXT, *_ORDER),
    Form.DATE: (*_TEXT, *_ORDER),
    Form.LIST: (Operator.CONTAINS,),
}
"""Permitted operators for each type of attribute."""

_TIME: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_ENDS: Final = 2


class ParameterError(ValueError):
    """Error: a parameter cannot be compared with the attribute; the text is half a sentence."""


def make_test(attribute: Attribute, operator: Operator, parameters: Sequence[object]) -> Test:
    """Return the function that compares by an operator; several parameters are alternatives.

    Args:
        attribute: The attribute.
        operator: The operator.
        parameters: Its parameters.

    Raises:
        ParameterError: The attribute has no such operator, or no such value.
    """
    if operator not in OPERATORS[attribute.form]:
        known = ", ".join(OPERATORS[attribute.form])
        raise ParameterError(
            f"{attribute.name} is a {attribute.form.value} and has no {operator}; use {known}"
        )
    match operator:
        case Operator.EQUALS | Operator.IN:
            return exact_values(attribute, parameters).__contains__
        case Operator.CONTAINS:
            return _contains(frozenset(_plain(parameter) for parameter in parameters))
        case Operator.LIKE:
            return _like([_pattern(attribute, parameter) for parameter in parameters])
        case Operator.MORE_THAN:
            return _more(min(_order_values(attribute, parameter) for parameter in parameters))
        case Operator.LESS_THAN:
            return _less(max(_order_values(attribute, parameter) for parameter in parameters))
        case Operator.BETWEEN:
            return _between([_range(attribute, parameter) for parameter in parameters])


def exact_values(attribute: Attribute, parameters: Sequence[object]) -> frozenset[Value]:
    """Return the parameters of `equals` and `in`, normalised like values of the attribute.

    Args:
        attribute: The attribute.
        parameters: The parameters.

    Raises:
        ParameterError: The attribute never has such a value.
    """
    return frozenset(_value(attribute, parameter) for parameter in parameters)


# ---- tests


def _contains(wanted: frozenset[str]) -> Test:
    return lambda value: isinstance(value, frozenset) and not wanted.isdisjoint(value)


def _like(patterns: Sequence[Pattern]) -> Test:
    if len(patterns) == 1:
        fits = patterns[0].fits
        return lambda value: fits(str(value))
    return lambda value: any(pattern.fits(str(value)) for pattern in patterns)


_Ordered: TypeAlias = tuple[float, str]
"""Sort key of a value with an order: a number, or a text that sorts by its meaning."""


def _key(value: Value) -> _Ordered:
    if isinstance(value, str):
        return (0.0, value)
    return (0.0 if isinstance(value, frozenset) else value, "")


def _more(least: _Ordered) -> Test:
    return lambda value: _key(value) > least


def _less(most: _Ordered) -> Test:
    return lambda value: _key(value) < most


def _between(ranges: Sequence[tuple[_Ordered, _Ordered]]) -> Test:
    def is_within(value: Value) -> bool:
        key = _key(value)
        return any(_is_in(key, low, high) for low, high in ranges)

    return is_within


def _is_in(key: _Ordered, low: _Ordered, high: _Ordered) -> bool:
    """Return whether a value is in a range; a range whose end is lower spans midnight."""
    return low <= key <= high if low <= high else key >= low or key <= high


# ---- parameters


def _plain(parameter: object) -> str:
    if not isinstance(parameter, str):
        raise ParameterError(f"{_show(parameter)} is no text; write it in quotes")
    if len(parameter) > MAX_POLICY_TEXT:
        raise ParameterError(f"a text has at most {MAX_POLICY_TEXT} characters")
    return parameter


def _value(attribute: Attribute, parameter: object) -> Value:
    match attribute.form:
        case Form.NUMBER:
            return _number(parameter)
        case Form.TRUTH:
            if not isinstance(parameter, bool):
                raise ParameterError(f"{_show(parameter)} is neither true nor false")
            return parameter
        case Form.TIME | Form.DATE:
            return _clock(attribute, _plain(parameter))
        case _:
            return _spelt(attribute, _plain(parameter))


def _number(parameter: object) -> float:
    if not is_number(parameter):
        raise ParameterError(f"{_show(parameter)} is no number")
    return parameter


def _spelt(attribute: Attribute, text: str) -> str:
    """Return a text normalised like the attribute: canonical addresses, lower-case names."""
    match attribute.form:
        case Form.ADDRESS:
            try:
                return canonical(text)
            except BadUrlError:
                return text
        case Form.DOMAIN:
            return text.lower()
        case Form.SCHEME:
            return SCHEME_ALIASES.get(text.lower(), text.lower())
        case Form.WORD:
            return _word(attribute, text)
        case _:
            return text


def _word(attribute: Attribute, text: str) -> str:
    for word in attribute.words:
        if text in {word, capital(word)}:
            return word
    raise ParameterError(f"{text!r} is none of {', '.join(attribute.words)}")


def capital(word: str) -> str:
    """Return a word with a capital letter, as the names of days are often written."""
    return word[:1].upper() + word[1:]


def _clock(attribute: Attribute, text: str) -> str:
    if attribute.form is Form.TIME:
        if not _TIME.fullmatch(text):
            raise ParameterError(f"{text!r} is no time of the day such as 08:30:00")
        return text
    try:
        is_date = _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        is_date = False
    if not is_date:
        raise ParameterError(f"{text!r} is no date such as 2026-11-21")
    return text


def _order_values(attribute: Attribute, parameter: object) -> _Ordered:
    return _key(_value(attribute, parameter))


def _range(attribute: Attribute, parameter: object) -> tuple[_Ordered, _Ordered]:
    ends = _plain(parameter).split()
    if len(ends) != _ENDS:
        raise ParameterError(f'{parameter!r} is no range; write both ends in one text, "1 9"')
    low, high = (_key(_end(attribute, end)) for end in ends)
    if low > high and attribute.form is not Form.TIME:
        raise ParameterError(f"{parameter!r} ends before it begins")
    return low, high


def _end(attribute: Attribute, text: str) -> Value:
    if attribute.form is not Form.NUMBER:
        return _clock(attribute, text)
    try:
        return _number(float(text))
    except ValueError as exc:
        raise ParameterError(f"{text!r} is no number") from exc


def _pattern(attribute: Attribute, parameter: object) -> Pattern:
    """Return a pattern whose pieces are normalised like values of the attribute."""
    text = _plain(parameter)
    match attribute.form:
        case Form.ADDRESS if "://" in text:
            scheme, _, rest = text.partition("://")
            host, slash, path = rest.partition("/")
            scheme = SCHEME_ALIASES.get(scheme.lower(), scheme.lower())
            return Pattern.read(f"{scheme}://{host.lower()}{slash}{path}")
        case Form.DOMAIN | Form.SCHEME:
            return Pattern.read(SCHEME_ALIASES.get(text.lower(), text.lower()))
        case Form.WORD if all(word.islower() for word in attribute.words):
            return Pattern.read(text.lower())
        case _:
            return Pattern.read(text)


def _show(value: object) -> str:
    return repr(value)[:40]
