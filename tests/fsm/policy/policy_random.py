"""Random policies and messages that have something to do with each other."""

from random import Random

from tests.fsm.policy.policy_reference import Case

DOMAINS = ["a.ex", "b.ex", "c.ex"]
RUNTIMES = ["hyperty-runtime://a.ex/ra", "hyperty-runtime://a.ex/rb", "hyperty-runtime://b.ex/r"]
RESOURCES = ["comm://a.ex/1", "comm://a.ex/2/changes", "ctxt://b.ex/1", *RUNTIMES, "block-7"]
SENDERS = ["hyperty://a.ex/h1", "hyperty://b.ex/h2", "comm://a.ex/1", f"{RUNTIMES[0]}/registry"]
NODE = "domain://msg-node.a.ex"
RECEIVERS = [*SENDERS, "hyperty://c.ex/h3", NODE, f"{NODE}/sm", "domain://registry.a.ex",
             "domain://registry.b.ex", "global://registry"]  # fmt: skip
VERBS = ["create", "read", "update", "delete", "subscribe", "execute"]
METHODS = ["open", "re-open", "close"]
USERS = ["user://idp.ex/alice", "user://idp.ex/bob", "user://b.ex/eve"]
ISSUERS = ["https://idp.ex", "https://b.ex"]
ROLES = ["admin", "staff", "guest"]
WEEK = ["monday", "friday", "saturday", "sunday"]
TIMES = ["00:00:00", "06:30:00", "12:00:00", "18:00:00", "23:59:59"]
DATES = ["1970-01-01", "2026-01-31", "2026-11-21"]
NOWS = [0.0, 1769839200.0, 1795262399.0, 1795240000.5]

TEXTS = {
    "srcUsername": ["alice@idp.ex", "bob@idp.ex", "eve@b.ex"],
    "srcIDPDomain": ["idp.ex", "b.ex"],
    "srcIDP": ISSUERS,
    "srcRuntime": RUNTIMES,
    "srcSPDomain": DOMAINS,
    "srcDomain": DOMAINS,
    "srcScheme": ["hyperty", "comm", "hyperty-runtime"],
    "msgFrom": SENDERS,
    "msgTo": RECEIVERS,
    "dstSPDomain": DOMAINS,
    "dstScheme": ["hyperty", "comm", "domain", "global"],
    "actionType": [*VERBS, *METHODS],
    "resource": RESOURCES,
    "resourceScheme": ["comm", "ctxt", "hyperty-runtime", "hyperty"],
    "weekday": WEEK,
}
NAMES = [*TEXTS, "srcRoles", "authenticated", "ownResource", "auth", "msgId", "time", "date"]


def some(random: Random, words: list, most: int = 3) -> list:
    return random.sample(words, random.randint(1, min(most, len(words))))


# ---- messages


def body_of(random: Random, to: str, verb: str) -> dict:
    body: dict = {}
    if to.endswith("/session") and verb == "execute":
        return {"method": random.choice(METHODS), "params": {"runtimeURL": random.choice(RUNTIMES)}}
    if to.endswith("/address-allocation"):
        return {"scheme": random.choice(["comm", "hyperty", 7]), "value": {"number": 1}}
    if random.random() < 0.3:
        body["auth"] = random.choice([True, False, "yes", 1])
    if random.random() < 0.4:
        body["resource"] = random.choice([*RESOURCES, 7])
    if random.random() < 0.3:
        body["resources"] = random.choices(RESOURCES, k=random.randint(1, 3))
    if random.random() < 0.2:
        body["value"] = {"url": random.choice(RESOURCES)}
    return body


def random_case(random: Random) -> Case:
    to = random.choice([*RECEIVERS, f"{NODE}/session", f"{NODE}/address-allocation"])
    verb = "execute" if to.endswith("/session") else random.choice(VERBS)
    message = {
        "id": random.randint(1, 9),
        "type": verb,
        "from": random.choice(SENDERS),
        "to": to,
        "body": body_of(random, to, verb),
    }
    return Case(
        message,
        runtime=random.choice([None, *RUNTIMES]),
        user=random.choice([None, *USERS]),
        issuer=random.choice(ISSUERS),
        roles=tuple(random.sample(ROLES, random.randint(0, 2))),
        until=random.choice([1e9, 1e12]),
        now=random.choice(NOWS),
        owned=frozenset(random.sample(RESOURCES, 2)),
    )


# ---- policies


def pattern(random: Random, word: str) -> str:
    """A pattern that may fit a word."""
    cut = sorted(random.choices(range(len(word) + 1), k=2))
    return random.choice(
        [word[: cut[0]] + "*", "*" + word[cut[1] :], word[: cut[0]] + "*" + word[cut[1] :],
         f"*{word[cut[0] : cut[1]]}*", word, "*"]
    )  # fmt: skip


def ordered(random: Random, values: list) -> dict:
    operator = random.choice(["moreThan", "lessThan", "between"])
    if operator != "between":
        return {operator: random.choice(values)}
    low, high = sorted(random.choices(values, k=2))
    return {"between": f"{low} {high}"}


def operator_of(random: Random, name: str) -> dict:  # noqa: PLR0911 - one for each form
    """One operator an attribute has, with its parameter."""
    if name == "srcRoles":
        return {"contains": random.choice([random.choice(ROLES), some(random, ROLES)])}
    if name in {"authenticated", "ownResource", "auth"}:
        return {"equals": random.random() < 0.6}
    if name == "msgId":
        values = list(range(1, 10))
        return random.choice([ordered(random, values), {"in": some(random, values)}])
    if name == "time" and random.random() < 0.2:
        return {"between": f"{TIMES[3]} {TIMES[1]}"}
    if name in {"time", "date"} and random.random() < 0.7:
        return ordered(random, TIMES if name == "time" else DATES)
    words = {"time": TIMES, "date": DATES}.get(name) or TEXTS[name]
    if random.random() < 0.3:
        return {"like": pattern(random, random.choice(words))}
    exact = {"equals": random.choice([random.choice(words), some(random, words)])}
    return random.choice([exact, {"in": some(random, words)}])


def asked(random: Random, name: str, depth: int) -> dict | list:
    """What is asked of one attribute."""
    kind = random.random()
    if depth == 0 or kind < 0.7:
        return operator_of(random, name)
    if kind < 0.8:
        return {"not": asked(random, name, depth - 1)}
    parts = [asked(random, name, depth - 1) for _ in range(random.randint(1, 2))]
    return random.choice([parts, {"anyOf": parts}, {"allOf": parts}])


def condition(random: Random, depth: int = 2) -> dict | list:
    kind = random.random()
    if depth == 0 or kind < 0.6:
        names = random.sample(NAMES, random.choice([1, 1, 1, 2]))
        return {name: asked(random, name, 1) for name in names}
    if kind < 0.7:
        return {"not": condition(random, depth - 1)}
    parts = [condition(random, depth - 1) for _ in range(random.randint(1, 3))]
    return random.choice([parts, {"anyOf": parts}, {"allOf": parts}])


def scope(random: Random, number: int) -> dict:
    made: dict = {"id": random.choice([number, f"e{number}"])}
    if random.random() < 0.3:
        made["target"] = random.choice([{}, [], condition(random, 1), condition(random, 0)])
    if random.random() < 0.2:
        made["direction"] = random.choice(["in", "out", "both"])
    if random.random() < 0.4:
        made["priority"] = random.choice([-1, 0, 1, 2.5])
    if random.random() < 0.2:
        kind, word = random.choice(["obligations", "advice"]), random.choice(["permit", "block"])
        made[kind] = {word: [{"do": "count", "name": f"c{random.randint(1, 9)}"}]}
    return made


def algorithm(random: Random) -> str:
    return random.choice(
        ["denyOverrides", "permitOverrides", "firstApplicable", "allowOverrides", "blockOverrides"]
    )


def random_rule(random: Random, number: int) -> dict:
    rule = {**scope(random, number), "effect": random.choice(["permit", "allow", "deny", "block"])}
    if random.random() < 0.8:
        rule["condition"] = condition(random)
    return rule


def random_policy(random: Random, number: int) -> dict:
    rules = [random_rule(random, n) for n in range(random.randint(0, 4))]
    return {**scope(random, number), "rules": rules, "ruleCombiningAlgorithm": algorithm(random)}


def random_set(random: Random, number: int) -> dict:
    policies = [random_policy(random, n) for n in range(random.randint(0, 3))]
    return {
        **scope(random, number), "policies": policies,
        "policyCombiningAlgorithm": algorithm(random),
    }  # fmt: skip
