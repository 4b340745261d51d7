"""Values that programs stumble over."""

from random import Random

from tests.support.node_process import DOMAIN

ALICE, BOB = f"hyperty-runtime://{DOMAIN}/alice", f"hyperty-runtime://{DOMAIN}/bob"
HA, HB = f"hyperty://{DOMAIN}/honest-a", f"hyperty://{DOMAIN}/honest-b"
THING = f"comm://{DOMAIN}/honest-object"
MN = f"domain://msg-node.{DOMAIN}"
NOWHERE = f"{MN}/nothing"
PARTS = (*(f"{MN}/{one}" for one in ("sm", "address-allocation", "session", "policy")), NOWHERE)
GHOST = f"hyperty-runtime://{DOMAIN}/nobody-is-called-so/ua"
VICTIMS = (ALICE, f"{ALICE}/sm", BOB, f"{BOB}/ua", HA, HB, THING, f"{THING}/changes")

NUMBERS = (0, -1, 1, 2**31, 2**53, 2**53 - 1, 2**63, 2**64, 10**30, 1.5, -0.0, 1e308, True, False)
TEXTS = (
    "", " ", "\u0000", "\u202e", "\ufeff", "\U0001f4a9", "e\u0301", "\u0130", "x" * 1000, "../..",
    "%00", "%2e%2e", "\\", "'\"", "\n", "\r\n", "null", "undefined", "NaN", "{}", "a" * 20_000,
    "runtime://", "://", "hyperty://a.ex", "mn:/session", "hyperty://[::1]/x", "https://a.ex/x",
)  # fmt: skip
TYPES = (
    "create", "read", "update", "delete", "subscribe", "unsubscribe", "execute", "forward",
    "response", "CREATE", "Subscribe", "dance", "open", "re-open", "close", "ping",
)  # fmt: skip
KEYS = (
    "code", "value", "resource", "resources", "subscribe", "unsubscribe", "childrenResources",
    "source", "subscriber", "via", "method", "params", "scheme", "criteria", "attribute",
    "attributeType", "operation", "identity", "idToken", "accessToken", "description", "desc",
    "Message", "Value", "Code", "message", "p2p", "auth", "schema", "cmd", "__proto__", "", "body",
)  # fmt: skip
RAW_NUMBERS = ("1e400", "-1e400", "-0", "1E5", "0.1e-400", "18446744073709551616", "01", "+1", "NaN",
               "Infinity", "1e", "9" * 400)  # fmt: skip


def deep(dice: Random) -> object:
    """Return something nested, sometimes deeper than the limit."""
    value: object = 1
    for _ in range(dice.choice((3, 31, 33, 200))):
        value = [value] if dice.random() < 0.5 else {"a": value}
    return value


def wide(dice: Random) -> object:
    """Return something with many parts, sometimes more than the limit."""
    many = dice.choice((3, 255, 258, 400))
    if dice.random() < 0.5:
        return {str(number): number for number in range(many)}
    return [dice.choice(VICTIMS) for _ in range(many)]


def address(dice: Random, own: str) -> str:
    """Return an address, of anybody, spelt in any way."""
    base = dice.choice((own, *VICTIMS, *PARTS, GHOST, f"domain://registry.{DOMAIN}",
                        "hyperty://b.ex/h", "global://registry", f"domain://idm.{DOMAIN}"))  # fmt: skip
    return spelt(dice, base) if dice.random() < 0.5 else base


def spelt(dice: Random, base: str) -> str:
    """Spell an address in a way that may or may not mean the same."""
    way = dice.randrange(12)
    place = dice.randrange(len(base) + 1)
    if way == 0:
        return base.upper()
    if way == 1:
        return base + dice.choice(("/", "//", "/.", "/..", "/sm", "?x", "#x", "\u0000", " "))
    if way == 2:
        return base.replace("hyperty-runtime://", "runtime://")
    if way == 3:
        return base.replace("://", dice.choice((":/", ":///", "://x@", "://a:b@", ":")), 1)
    if way == 4:
        return base.replace(DOMAIN, dice.choice((f"{DOMAIN}.", f"{DOMAIN}:80", "\uff41.ex", "b.ex")))
    if way == 5:
        return base[:place]
    if way == 6:
        return base[:place] + dice.choice(TEXTS) + base[place:]
    if way == 7:
        return base[:place] + f"%{ord(base[place % len(base)]):02x}" + base[place + 1 :]
    if way == 8:
        return base.replace("/", "\\")
    if way == 9:
        return f"{base}/../{dice.choice(('alice', 'bob', 'x'))}"
    return base[:-1] if way == 10 else base + base


def anything(dice: Random, own: str) -> object:
    """Return any JSON."""
    way = dice.randrange(10)
    if way == 0:
        return dice.choice(NUMBERS)
    if way in {1, 2}:
        return dice.choice(TEXTS)
    if way == 3:
        return None
    if way == 4:
        return deep(dice)
    if way == 5:
        return wide(dice)
    if way == 6:
        return {dice.choice(KEYS): anything(dice, own) for _ in range(dice.randrange(4))}
    if way == 7:
        return [anything(dice, own) for _ in range(dice.randrange(4))]
    return address(dice, own)
