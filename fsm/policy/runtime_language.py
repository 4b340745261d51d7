"""Translation of the policy language of upstream's runtime into sets of rules (POL-16, C-61).

Upstream writes one policy: a `key`, `rules` with a target (everything, a hyperty or a user), a
condition (attribute, operation, parameter, or `and`, `or`, `not` of such) and a decision, a
combining algorithm, and actions. The translation is a document of the language that
`fsm.policy.reading` reads; what has no counterpart there is refused.
"""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from fsm.policy.page import Place
from specs.jsonvalue import Json, JsonObject
from specs.limits.node import MAX_POLICY_DEPTH, MAX_POLICY_RULES, MAX_POLICY_TASKS
from specs.limits.protocol import MAX_LIST
from specs.message import MessageType

__all__ = ["is_of_runtime_language", "translated"]

_KEYS: Final = ("key", "rules", "actions", "combiningAlgorithm", "combining-algorithm", "groups")
_RULE_KEYS: Final = ("target", "scope", "condition", "decision", "authorise", "priority")
_CONDITION_KEYS: Final = ("attribute", "operator", "params")
_ACTION_KEYS: Final = ("method", "params")

_ALGORITHMS: Final = {
    **dict.fromkeys(("deny-overrides", "denyOverrides", "blockOverrides"), "denyOverrides"),
    **dict.fromkeys(("allow-overrides", "allowOverrides"), "permitOverrides"),
    **dict.fromkeys(("first-applicable", "firstApplicable"), "firstApplicable"),
}
"""Spellings of a combining algorithm in the text and in the code of upstream."""

_PARTS: Final[JsonObject] = {"in": ["domain", "domain-idp", "global", "hyperty-runtime"]}
_BETWEEN_HYPERTIES: Final[JsonObject] = {"not": {"srcScheme": _PARTS, "dstScheme": _PARTS}}
"""Upstream judges no messages between parts of runtimes and nodes."""

_GLOBAL: Final = "global"
_SCOPES: Final = (_GLOBAL, "hyperty", "user")
_WEEK: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
"""Upstream counts the days of the week from Sunday, which is 0."""

_ANY: Final = "*"
_EVERYTHING: Final[JsonObject] = {"msgFrom": {"like": _ANY}}
_LOGGED_IN: Final[JsonObject] = {"authenticated": {"equals": True}}
_SUBSCRIBING: Final[JsonObject] = {"actionType": {"equals": MessageType.SUBSCRIBE.value}}
_NOT_IN_ID: Final = re.compile(r"[^A-Za-z0-9._-]+")
_ID_LENGTH: Final = 64

Groups: TypeAlias = dict[str, list[str]]
"""Lists of users, domains or the like, by name."""

_Write: TypeAlias = Callable[[Place, str, list[str]], JsonObject]
"""Translates one comparison: where it stands, its operation, its parameters."""


def is_of_runtime_language(document: object) -> bool:
    """Return whether a document is a policy of upstream's runtime: it has a key, and no `id`."""
    return isinstance(document, dict) and "key" in document and "id" not in document


def translated(document: object, source: str) -> JsonObject:
    """Return the policy set that is equivalent to a policy of upstream's runtime.

    Args:
        document: The policy, as read from JSON or TOML; `groups` has the lists that its conditions
            name, which upstream keeps elsewhere.
        source: The file, or by whose message it came; stands in errors.

    Raises:
        BadPolicyError: It is none, or says what cannot be translated; nothing of it is used.
    """
    at = Place(source, "", document)
    for _ in at.keys(_KEYS):
        pass
    name = _identifier(at.key("key"))
    groups = _groups(at.key("groups"))
    rules = at.key("rules").items(MAX_POLICY_RULES)
    named = next(
        (key for key in ("combiningAlgorithm", "combining-algorithm") if key in at.table()),
        "combiningAlgorithm",
    )
    policy: JsonObject = {
        "id": "rules",
        "ruleCombiningAlgorithm": at.key(named).word(_ALGORITHMS, "denyOverrides"),
        "rules": [_rule(one, number, groups) for number, one in enumerate(rules)],
    }
    tasks: list[Json] = [_task(one) for one in at.key("actions").items(MAX_POLICY_TASKS)]
    if tasks:
        # They go along with either decision.
        policy["advice"] = {"permit": tasks, "deny": tasks}
    return {"id": name, "target": _BETWEEN_HYPERTIES, "policies": [policy]}


def _identifier(at: Place) -> str:
    name = _NOT_IN_ID.sub("-", at.label()).strip("-")[:_ID_LENGTH]
    if not name:
        raise at.bad("must name the policy with letters or digits")
    return name


def _groups(at: Place) -> Groups:
    if at.value is None:
        return {}
    return {
        str(name): [one.text() for one in at.key(str(name)).items(MAX_LIST)] for name in at.table()
    }


def _rule(at: Place, number: int, groups: Groups) -> JsonObject:
    for _ in at.keys(_RULE_KEYS):
        pass
    decided = next((key for key in ("decision", "authorise") if key in at.table()), "decision")
    decision = at.key(decided)
    if not isinstance(decision.value, bool):
        raise decision.bad("must be true, which permits, or false, which denies")
    rule: JsonObject = {
        "id": f"rule-{number + 1}",
        "effect": "permit" if decision.value else "deny",
        "target": _target(at),
        "condition": _condition(at.key("condition"), groups, MAX_POLICY_DEPTH // 2),
        "priority": at.key("priority").number(),
    }
    if not decision.value:
        rule["reason"] = "blocked by policy"
    return rule


def _target(at: Place) -> JsonObject:
    """Return the condition of messages that a rule is about: all, of a hyperty, or of a user."""
    target, scope = at.key("target").text() or _GLOBAL, at.key("scope").text()
    if not scope:
        scope = "user" if "://" in target else "hyperty"
        scope = _GLOBAL if target == _GLOBAL else scope
    match scope:
        case "global":
            return {}
        case "hyperty":
            return {"hyperties": {"contains": target}}
        case "user":
            return {"users": {"contains": target}}
        case _:
            raise at.key("scope").bad(f"must be one of {', '.join(_SCOPES)}")


# ---- conditions


def _condition(at: Place, groups: Groups, depth: int) -> JsonObject:
    """Translate a condition: a text of three words, a table of three keys, or a list."""
    if depth == 0:
        raise at.bad("is nested too deep; make it several rules")
    match at.value:
        case None | "" | []:
            return {}
        case str(text):
            attribute, _, rest = text.partition(" ")
            operation, _, parameters = rest.partition(" ")
            return _comparison(at, groups, (attribute, operation, parameters.split()))
        case list():
            return _joined(at, groups, depth)
        case _:
            for _ in at.keys(_CONDITION_KEYS):
                pass
            words = at.key("attribute").text(), at.key("operator").text()
            return _comparison(at, groups, (*words, _parameters(at.key("params"))))


def _parameters(at: Place) -> list[str]:
    if not isinstance(at.value, list):
        return [at.label()]
    return [one.label() for one in at.items(MAX_LIST)]


def _joined(at: Place, groups: Groups, depth: int) -> JsonObject:
    first, *rest = at.items(MAX_LIST)
    parts: list[Json] = [_condition(one, groups, depth - 1) for one in rest]
    match first.value:
        case "not" if len(parts) == 1:
            return {"not": parts[0]}
        case "and" if parts:
            return {"allOf": parts}
        case "or" if parts:
            return {"anyOf": parts}
        case _ if not parts:
            # Upstream writes single conditions as lists, too.
            return _condition(first, groups, depth - 1)
        case _:
            raise at.bad('must begin with "and", "or" or "not", and the conditions that it joins')


def _comparison(at: Place, groups: Groups, words: tuple[str, str, list[str]]) -> JsonObject:
    attribute, operation, parameters = words
    write = _ATTRIBUTES.get(attribute)
    if write is None:
        raise at.bad(f"{attribute!r} is no attribute; known are {', '.join(_ATTRIBUTES)}")
    if not parameters or not parameters[0]:
        what = "an attribute, an operation and a parameter"
        raise at.bad(f'must be {what}, as in "date equals 01/01/2017"')
    if operation == "in" and len(parameters) == 1:
        if parameters[0] not in groups:
            raise at.bad(f"there is no group {parameters[0]!r}; add it to groups")
        operation, parameters = "equals", groups[parameters[0]]
    elif operation == "in":
        operation = "equals"
    if operation == "equals" and not parameters:
        # Nothing is in an empty group.
        return {"not": _EVERYTHING}
    if operation == "equals" and _ANY in parameters:
        return _SUBSCRIBING if attribute == "subscription" else _EVERYTHING
    return write(at, operation, parameters)


def _refused(at: Place, operation: str) -> Exception:
    return at.bad(f"the operation {operation!r} is none of this attribute")


def _plain(name: str, operator: str, form: Callable[[str], str] = str) -> _Write:
    """Return a translator for an attribute that supports equality only."""

    def write(at: Place, operation: str, parameters: list[str]) -> JsonObject:
        if operation != "equals":
            raise _refused(at, operation)
        values: list[Json] = [form(one) for one in parameters]
        return {name: {operator: values}}

    return write


def _of_user(operator: str, form: Callable[[str], str] = str) -> _Write:
    """Return a translator for an attribute of the sender's user; without a user it is false."""
    of_name = _plain("srcUsername", operator, form)

    def write(at: Place, operation: str, parameters: list[str]) -> JsonObject:
        return {**_LOGGED_IN, **of_name(at, operation, parameters)}

    return write


def _subscription(at: Place, operation: str, parameters: list[str]) -> JsonObject:
    if any(one.startswith("preauthori") for one in parameters):
        raise at.bad("an object has its own list of allowed observers; give it with the object")
    return {**_SUBSCRIBING, **_of_user("equals")(at, operation, parameters)}


_WHEN: Final = {"greaterThan": "moreThan", "moreThan": "moreThan", "lessThan": "lessThan"}
_PAIR: Final = 2


def _date(at: Place, operation: str, parameters: list[str]) -> JsonObject:
    days = [_day(at, one) for one in parameters]
    match operation:
        case "equals":
            return {"date": {"equals": [*days]}}
        case "between" if len(days) == _PAIR:
            return {"date": {"between": " ".join(days)}}
        case _ if operation in _WHEN:
            return {"date": {_WHEN[operation]: days[0]}}
        case _:
            raise _refused(at, operation)


def _day(at: Place, text: str) -> str:
    """Return 2017-01-31 for 31/1/2017."""
    found = re.fullmatch(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", text)
    if found is None:
        raise at.bad(f"{text!r} is no date such as 31/01/2017")
    return f"{found[3]}-{found[2]:>02}-{found[1]:>02}"


def _time(at: Place, operation: str, parameters: list[str]) -> JsonObject:
    """Translate a time, which upstream counts in minutes: 0800 lasts until 08:00:59."""
    minutes = [_minute(at, one) for one in parameters]
    match operation:
        case "equals":
            return {"time": {"like": [f"{one}:*" for one in minutes]}}
        case "between" if len(minutes) == _PAIR:
            return {"time": {"between": f"{minutes[0]}:00 {minutes[1]}:59"}}
        case "lessThan":
            return {"time": {"lessThan": f"{minutes[0]}:00"}}
        case _ if operation in _WHEN:
            return {"time": {"moreThan": f"{minutes[0]}:59"}}
        case _:
            raise _refused(at, operation)


def _minute(at: Place, text: str) -> str:
    """Return 08:00 for 800, 0800 and 08:00."""
    digits = text.replace(":", "").zfill(4)
    if re.fullmatch(r"([01][0-9]|2[0-3])[0-5][0-9]", digits) is None:
        raise at.bad(f"{text!r} is no time of the day such as 0800")
    return f"{digits[:2]}:{digits[2:]}"


def _weekday(text: str) -> str:
    is_number = len(text) == 1 and text in "0123456"
    return _WEEK[int(text)] if is_number else text.lower()


_ATTRIBUTES: Final[dict[str, _Write]] = {
    "source": _of_user("equals"),
    "domain": _of_user("like", lambda domain: f"*@{domain}"),
    "date": _date,
    "weekday": _plain("weekday", "equals", _weekday),
    "time": _time,
    "resourceType": _plain("resourceTypes", "contains"),
    "scheme": _plain("resourceScheme", "equals"),
    "subscription": _subscription,
}
"""The attributes of upstream's runtime."""


# ---- actions


def _task(at: Place) -> JsonObject:
    """Translate an action, which upstream runs after the decision, whatever that is."""
    name, parameter = "", ""
    if isinstance(at.value, dict):
        for _ in at.keys(_ACTION_KEYS):
            pass
        name = at.key("method").text()
        given = _parameters(at.key("params"))
        parameter = given[0] if given else ""
    else:
        name, _, parameter = at.text().partition(" ")
    match name:
        case "log":
            return {"do": "log", "when": "after", "text": parameter}
        case "count":
            return {"do": "count", "when": "after", "name": parameter}
        case _:
            raise at.bad(f"{name!r} is no action here; known are log and count")
