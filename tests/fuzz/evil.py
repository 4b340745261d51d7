"""Values that programs stumble over."""

from collections.abc import Callable
from random import Random

from tests.support.node.node_process import DOMAIN

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
RAW_NUMBERS = ("1e400", "-1e400", "-0", "1E5", "0.1e-400", "18446744073709551616", "01", "+1",
               "NaN", "Infinity", "1e", "9" * 400)  # fmt: skip


_OTHERS = (
    GHOST, f"domain://registry.{DOMAIN}", f"domain://idm.{DOMAIN}", "hyperty://b.ex/h",
    "global://registry",
)  # fmt: skip


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
    base = dice.choice((own, *VICTIMS, *PARTS, *_OTHERS))
    return spelt(dice, base) if dice.random() < 0.5 else base


def spelt(dice: Random, base: str) -> str:
    """Spell an address in a way that may or may not mean the same."""
    return dice.choice(_SPELLINGS)(dice, base)


def _in_place(dice: Random, base: str) -> str:
    place = dice.randrange(len(base) + 1)
    return base[:place] + dice.choice(TEXTS) + base[place:]


def _escaped(dice: Random, base: str) -> str:
    place = dice.randrange(len(base))
    return base[:place] + f"%{ord(base[place]):02x}" + base[place + 1 :]


_HOSTS = (f"{DOMAIN}.", f"{DOMAIN}:80", "\uff41.ex", "b.ex")
_TAILS = ("/", "//", "/.", "/..", "/sm", "?x", "#x", "\u0000", " ", "/../alice", "/../x")
_ENDS_OF_SCHEME = (":/", ":///", "://x@", "://a:b@", ":")
_SPELLINGS: tuple[Callable[[Random, str], str], ...] = (
    lambda _, base: base.upper(),
    lambda dice, base: base + dice.choice(_TAILS),
    lambda _, base: base.replace("hyperty-runtime://", "runtime://"),
    lambda dice, base: base.replace("://", dice.choice(_ENDS_OF_SCHEME), 1),
    lambda dice, base: base.replace(DOMAIN, dice.choice(_HOSTS)),
    lambda dice, base: base[: dice.randrange(len(base) + 1)],
    _in_place,
    _escaped,
    lambda _, base: base.replace("/", "\\"),
    lambda _, base: base[:-1],
    lambda _, base: base + base,
)


def anything(dice: Random, own: str) -> object:
    """Return any JSON."""
    return dice.choice(_KINDS)(dice, own)


_KINDS: tuple[Callable[[Random, str], object], ...] = (
    lambda dice, _: dice.choice(NUMBERS),
    lambda dice, _: dice.choice(TEXTS),
    lambda dice, _: dice.choice(TEXTS),
    lambda *_: None,
    lambda dice, _: deep(dice),
    lambda dice, _: wide(dice),
    lambda dice, own: {dice.choice(KEYS): anything(dice, own) for _ in range(dice.randrange(4))},
    lambda dice, own: [anything(dice, own) for _ in range(dice.randrange(4))],
    address,
    address,
)
