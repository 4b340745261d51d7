"""Spellings of other people's addresses: what a forger may try (RELIABILITY S1)."""

from random import Random

DOMAIN = "a.ex"
MN = f"domain://msg-node.{DOMAIN}"
RA, RB, OLD, GONE = [f"hyperty-runtime://{DOMAIN}/{name}" for name in ("ra", "rb", "old", "gone")]
HA, HB, OA, OB, HO = [
    f"{scheme}://{DOMAIN}/{name}"
    for scheme, name in (
        ("hyperty", "ha"), ("hyperty", "hb"), ("comm", "oa"), ("comm", "ob"), ("hyperty", "ho"),
    )
]  # fmt: skip
BOUND = "hyperty://b.ex/bound-to-rb"
VICTIMS = [
    RB, f"{RB}/sm", f"{RB}/ua", f"{RB}/registry", f"{RB}/protostub/1", f"{RB}/p2phandler/1",
    HB, f"{HB}/part", OB, f"{OB}/changes", f"{OB}/subscription", f"{OB}/children/chat", BOUND,
    OLD, f"{OLD}/ua", HO, f"{OLD}/protostub/session", GONE, f"{GONE}/sm",
    "hyperty://a.ex/nobody", "comm://a.ex/nobody", "user://a.ex/bob", "hyperty://a.ex",
    MN, f"{MN}/sm", f"{MN}/session", f"{MN}/address-allocation", f"{MN}/policy",
    f"domain://registry.{DOMAIN}", f"domain://idm.{DOMAIN}", f"domain://qos.{DOMAIN}",
    "domain-idp://a.ex", "global://registry", "domain://msg-node.b.ex/sm",
    "hyperty-runtime://b.ex/rz", "hyperty-runtime://b.ex/rz/sm",
]  # fmt: skip
"""What RA must never speak as: others' and nobody's addresses, and the node's own parts."""

ODD = [
    "%2e",
    "%00",
    "\x00",
    "\u202e",
    "\uff52",
    "\u0430",
    "\u2024",
    "..",
    ".",
    "//",
    "/",
    "\\",
    " ",
]


def case(random, text):
    return "".join(random.choice((one.upper(), one.lower(), one)) for one in text)


def percent(random, text):
    at = random.randrange(len(text))
    return f"{text[:at]}%{ord(text[at]):02x}{text[at + 1 :]}"


def odd(random, text):
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(ODD) + text[at:]


def dots(random, text):
    """Up and down again, or out of one's own into the victim's."""
    scheme, _, rest = text.partition("://")
    host, _, path = rest.partition("/")
    up = random.choice((f"ra/../{path}", f"./{path}", f"{path}/..", f"{path}/../rb", f"{path}/."))
    return f"{scheme}://{host}/{up}"


def host(random, text):
    scheme, _, rest = text.partition("://")
    name, slash, path = rest.partition("/")
    reported = random.choice(
        (f"{name}:80", f"ra@{name}", f"ra:x@{name}", f"{name}.", f".{name}", f"{name}..",
         f"[{name}]", f"{name}?", f"{name}#", f"{name.upper()}", f"www.{name}",
         f"{name}\x00", f"x{name}")
    )  # fmt: skip
    return f"{scheme}://{reported}{slash}{path}"


def alias(random, text):
    reported = text.replace("hyperty-runtime://", random.choice(("runtime://", "RunTime://")))
    return reported + random.choice(("", "/", "//", "/x", "?x", "#x", "/%2f"))


def tail(random, text):
    return text + random.choice(("x", "2", "/sm", "/ra", f"/{RA}", "?", "#", "%20", "/../ra", ";a"))


def glue(random, text):
    return random.choice(
        (f"{RA}/{text}", f"{RA}{text}", f"{text}/{RA}", f"{text},{RA}", f"{RA} {text}")
    )


MUTATIONS = (case, percent, odd, dots, host, alias, tail, glue)


def variants(seed, count):
    random = Random(seed)  # noqa: S311 - no secret
    for _ in range(count):
        text = random.choice(VICTIMS)
        for _ in range(random.randint(1, 3)):
            text = random.choice(MUTATIONS)(random, text)
        yield text
