"""What a policy decides, worked out the slow way: straight from the document.

Nothing of the engine is used, and nothing is done as the engine does it. Truth is a
number (1, 0, and a half for "cannot be known"), all parts are always worked out, and
messages are the JSON that came, not what was made of it.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime

import attrs

HALF = 0.5
WEEK = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
SERVICES = ("msg-node.", "registry.", "idm.", "qos.", "catalogue.")
PERMIT, DENY, SILENT, UNSURE = "permit", "deny", "notApplicable", "indeterminate"
SPELT = {"permit": PERMIT, "allow": PERMIT, "deny": DENY, "block": DENY}
ROLES = ("obligations", "advice")


@attrs.frozen
class Case:
    """A message as JSON, and what is known beside it."""

    message: dict
    runtime: str | None = None
    user: str | None = None
    issuer: str | None = None
    roles: tuple[str, ...] = ()
    until: float = 0.0
    now: float = 0.0
    domain: str = "a.ex"
    owned: frozenset[str] = frozenset()


@attrs.frozen
class Outcome:
    """What was decided, by which element, and what is to be done."""

    decision: str
    path: str
    tasks: tuple[tuple, ...] = ()


def scheme(address: str) -> str:
    return address.split("://", maxsplit=1)[0]


def domain(address: str) -> str:
    host = address.split("/")[2]
    if scheme(address) in {"domain", "global"}:
        for service in SERVICES:
            if host.startswith(service):
                return host[len(service) :]
    return host


def resources(case: Case) -> list:
    """Every resource a message names, in order, once."""
    message, body = case.message, case.message["body"]
    if message["to"] == f"domain://msg-node.{case.domain}/session":
        return [body.get("params", {}).get("runtimeURL")]
    allocates = message["to"] == f"domain://msg-node.{case.domain}/address-allocation"
    if allocates and message["type"] == "create":
        wanted = body.get("scheme")
        return [None if not isinstance(wanted, str) else f"{wanted}://{case.domain}"]
    named = [body.get("resource")] if body.get("resource") is not None else []
    named += body.get("resources", []) + body.get("childrenResources", [])
    value = body.get("value")
    if isinstance(value, dict) and "url" in value and scheme(message["to"]) in {"domain", "global"}:
        named.append(value["url"])
    texts = [one if isinstance(one, str) else None for one in named]
    return [one for n, one in enumerate(texts) if one not in texts[:n]] or [message["to"]]


def attribute(case: Case, resource, name: str):
    """The value of an attribute; None if it cannot be had."""
    message, body = case.message, case.message["body"]
    vouched = case.user is not None and case.now < case.until
    moment = datetime.fromtimestamp(int(case.now), UTC)
    is_control = message["to"].endswith("/session") and message["type"] == "execute"
    said = body.get("auth", False)
    path = case.user.split("/", 3)[3] if vouched else ""
    table = {
        "srcUsername": f"{path}@{case.user.split('/')[2]}" if vouched else None,
        "srcIDPDomain": case.user.split("/")[2] if vouched else None,
        "srcIDP": case.issuer if vouched else None,
        "srcRoles": set(case.roles) if vouched else None,
        "authenticated": vouched,
        "srcRuntime": case.runtime,
        "srcSPDomain": domain(message["from"]),
        "srcDomain": domain(message["from"]),
        "srcScheme": scheme(message["from"]),
        "msgFrom": message["from"],
        "msgTo": message["to"],
        "dstSPDomain": domain(message["to"]),
        "dstScheme": scheme(message["to"]),
        "actionType": body["method"] if is_control else message["type"],
        "resource": resource,
        "resourceScheme": scheme(resource) if resource and "://" in resource else None,
        # Whoever has no session owns nothing.
        "ownResource": None if resource is None else bool(case.runtime) and resource in case.owned,
        "auth": said if isinstance(said, bool) else None,
        "msgId": message["id"],
        "time": moment.strftime("%H:%M:%S"),
        "date": moment.strftime("%Y-%m-%d"),
        "weekday": WEEK[moment.weekday()],
    }
    return table[name]


# ---- conditions


def seconds(text: str) -> int:
    hours, minutes, rest = map(int, text.split(":"))
    return hours * 3600 + minutes * 60 + rest


def size(name: str, value):
    """Something that can be put in order."""
    return seconds(value) if name == "time" else value


def is_between(name: str, value, parameter: str) -> bool:
    low, high = parameter.split()
    if name == "msgId":
        return float(low) <= value <= float(high)
    low, high, value = size(name, low), size(name, high), size(name, value)
    night = name == "time" and low > high
    return (value >= low or value <= high) if night else low <= value <= high


def wildcard(pattern: str) -> re.Pattern:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def compare(name: str, operator: str, value, parameter) -> bool:
    match operator:
        case "equals" | "in":
            return value == parameter
        case "moreThan":
            return size(name, value) > size(name, parameter)
        case "lessThan":
            return size(name, value) < size(name, parameter)
        case "between":
            return is_between(name, value, parameter)
        case "contains":
            return parameter in value
        case "like":
            return wildcard(parameter).fullmatch(value) is not None


def truth(condition, value_of: Callable[[str], object], name: str | None = None) -> float:
    """How true a condition is, or what is asked of one attribute."""
    if isinstance(condition, list):
        return max(truth(one, value_of, name) for one in condition)
    found = []
    for key, inner in condition.items():
        if key == "not":
            found.append(1 - truth(inner, value_of, name))
        elif key == "anyOf":
            found.append(max(truth(one, value_of, name) for one in inner))
        elif key == "allOf":
            found.append(min(truth(one, value_of, name) for one in inner))
        elif name is None:
            found.append(truth(inner, value_of, key))
        else:
            value = value_of(name)
            some = inner if isinstance(inner, list) else [inner]
            fits = value is not None and any(compare(name, key, value, one) for one in some)
            found.append(HALF if value is None else float(fits))
    return min(found)


def holds(condition, value_of) -> float:
    return 1.0 if condition in (None, {}, []) else truth(condition, value_of)


# ---- elements


def evaluate(case: Case, element: dict, resource, path: str = "") -> Outcome:
    """What a rule, a policy or a set says of one resource."""
    path = f"{path}/{element['id']}" if path else str(element["id"])
    way = "out" if domain(case.message["to"]) != case.domain else "in"
    if element.get("direction", "both") not in {way, "both"}:
        return Outcome(SILENT, "")
    aimed = holds(element.get("target"), lambda name: attribute(case, resource, name))
    if aimed == 0:
        return Outcome(SILENT, "")
    if aimed == HALF:
        return Outcome(UNSURE, path)
    if "effect" in element:
        outcome = of_rule(case, element, resource, path)
    else:
        is_set = "policies" in element
        parts = element["policies"] if is_set else element["rules"]
        algorithm = element.get(("policy" if is_set else "rule") + "CombiningAlgorithm")
        outcome = combine(algorithm, parts, [evaluate(case, one, resource, path) for one in parts])
    own = tasks_of(element, path, outcome.decision)
    return attrs.evolve(outcome, tasks=outcome.tasks + own)


def of_rule(case: Case, rule: dict, resource, path: str) -> Outcome:
    true = holds(rule.get("condition"), lambda name: attribute(case, resource, name))
    if true == HALF:
        return Outcome(UNSURE, path)
    return Outcome(SPELT[rule["effect"]], path) if true else Outcome(SILENT, "")


def tasks_of(element: dict, path: str, decision: str) -> tuple[tuple, ...]:
    """What an element wants done, each with where it stands: two may read the same."""
    return tuple(
        ((path, kind, word, number), (task["do"], task.get("name", ""), kind == "advice"))
        for kind in ROLES
        for word, tasks in element.get(kind, {}).items()
        if SPELT[word] == decision
        for number, task in enumerate(tasks)
    )


def combine(algorithm: str | None, parts: list[dict], outcomes: list[Outcome]) -> Outcome:
    """What several say together, in the order of their priorities."""
    order = sorted(range(len(parts)), key=lambda n: (parts[n].get("priority", 0), n))
    said = [outcomes[n] for n in order if outcomes[n].decision != SILENT]
    if not said:
        return Outcome(SILENT, "")
    if algorithm == "firstApplicable":
        return said[0]
    # What ends it at once; then what comes before what.
    ranks = (
        (PERMIT, DENY, UNSURE)
        if algorithm in {"permitOverrides", "allowOverrides"}
        else (DENY, UNSURE, PERMIT)
    )
    decision = next(word for word in ranks if any(one.decision == word for one in said))
    agreeing = [one for one in said if one.decision == decision]
    if decision in {ranks[0], UNSURE}:
        return agreeing[0]
    return attrs.evolve(agreeing[0], tasks=sum((one.tasks for one in agreeing), ()))


def decide(case: Case, sets: list[dict], combining: str, default: str) -> Outcome:
    """What happens to a message, the default included."""
    alone = [
        combine(combining, sets, [evaluate(case, one, resource) for one in sets])
        for resource in resources(case)
    ]
    by_default = Outcome(default, "default")
    alone = [by_default if one.decision == SILENT else one for one in alone]
    said = [one for one in alone if one is not by_default]
    for decision, some in ((DENY, said), (UNSURE, said), (DENY, alone), (PERMIT, said + alone)):
        found = [one for one in some if one.decision == decision]
        if found:
            # What several resources want done is done once.
            tasks = dict(task for one in found for task in one.tasks)
            worst = DENY if decision == UNSURE else decision
            return Outcome(worst, found[0].path, tuple(tasks.values()))
    raise AssertionError(alone)
