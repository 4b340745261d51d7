"""What happens in one run, as data: who is there, what they do, and what goes wrong."""

import json
from enum import StrEnum
from string import ascii_lowercase
from typing import Final

import attrs
import cattrs


class Deed(StrEnum):
    """What an application does."""

    ASK = "ask"
    """`who` asks `whom` as often as `count` says, without waiting for the answers."""
    CREATE = "create"
    """`who` begins to report its data object."""
    OBSERVE = "observe"
    """`who` subscribes to the object of `whom`."""
    CHANGE = "change"
    """`who` changes its object as often as `count` says, one after the other."""
    LEAVE = "leave"
    """`who` unsubscribes from the object of `whom`."""
    CHILD = "child"
    """`who` creates, changes and deletes children of the object of `whom`, its own or another's, as
    often as `count` says."""
    DELETE = "delete"
    """`who` deletes its object."""
    DEPLOY = "deploy"
    """`who` deploys one more hyperty, which asks `whom` once, and undeploys it."""
    CRASH = "crash"
    """`who` asks `whom`, whose hyperty crashes on it."""


class Wrong(StrEnum):
    """What goes wrong between `one` and `other`, or with `one`: `actors.testing.chaos.toxics`."""

    LATENCY = "latency"
    DELAY = "delay"
    BANDWIDTH = "bandwidth"
    SLICER = "slicer"
    SLOW_CLOSE = "slow_close"
    LIMIT_DATA = "limit_data"
    LOSS = "loss"
    RESET = "reset"
    TIMEOUT = "timeout"
    """A black hole, until it ends with a reset."""
    PARTITION = "partition"
    """Held up, not lost."""
    DUPLICATE = "duplicate"
    """Frames come twice from a node to a runtime, whose bus claims to bear it."""
    RUNTIME = "runtime"
    """`one` dies without a word and comes back under its name after `lasts` seconds."""
    NODE = "node"
    """The same of a node."""
    CORRUPT = "corrupt"
    """Single bytes of frames change."""
    CLOCK = "clock"
    """The wall clock of the node `one` is wrong by `amount` seconds."""
    STORE = "store"
    """The file in which the runtime `one` stores its objects cannot be used."""
    SLOW_STORE = "slow-store"
    """Each write of the runtime `one` into that file takes `amount` seconds."""
    DISK = "disk"
    """The file in which the node `one` stores its records cannot be used."""
    BUSY = "busy"
    """The hyperty of `one` takes no message, and no change of an object."""
    POLICY = "policy"
    """The node `one` denies all requests between hyperties."""
    MOVE = "move"
    """The balancer sends the runtime `one` to the node `other` from now on, and cuts its link."""
    ENGINE = "engine"
    """The engine of the domain of the node `one` is down."""
    EMPTIED = "emptied"
    """The same, and it comes back without rows."""
    CUT = "cut"
    """The node `one` alone cannot reach the engine."""
    SLOW = "slow"
    """Each crossing from the node `one` to the engine takes `amount` seconds."""
    UNSURE = "unsure"
    """The next `amount` writes of the node `one` are made, and not answered."""
    SWALLOWED = "swallowed"
    """The next `amount` writes of the node `one` are not made, and not answered."""


@attrs.frozen
class Act:
    """Somebody does something.

    Attributes:
        at: Seconds after everybody has come.
        pause: Seconds between two, where there are several.
    """

    at: float
    deed: Deed
    who: str
    whom: str = ""
    count: int = 1
    pause: float = 0.0


@attrs.frozen
class Fault:
    """Something goes wrong.

    Attributes:
        at: Seconds after everybody has come.
        lasts: For how many seconds.
        amount: How much of it; what that means depends on what it is.
    """

    at: float
    wrong: Wrong
    one: str
    other: str = ""
    lasts: float = 0.0
    amount: float = 0.0


@attrs.frozen
class Plan:
    """One run, whole.

    Attributes:
        seed: What chance there still is: entropy, jitter, the order of tasks.
        runtimes: Names, each with the number of its domain: `r0` of `d0.ex` is `("r0", 0)`.
        members: How many nodes of each domain share an engine, `n0a`, `n0b` and so on; 0: every
            domain has one node, `n0`, and no engine.
        kinds: What P2P links may use; none: no P2P.
        topology: `triangle` or `trapezoid`.
        latency: Seconds a frame takes between any two when nothing is wrong.
        stored: Whether runtimes have a store, in which their objects are.
        window: How many children an object keeps; 0: all.
        steady: Whether it depends as little as possible on how many steps its tasks take: frames
            between any two take a time of their own, tasks run in the order in which they began,
            and what chance gives does not depend on who asked before.
    """

    seed: int
    runtimes: tuple[tuple[str, int], ...]
    kinds: tuple[str, ...] = ()
    topology: str = "triangle"
    latency: float = 0.0
    acts: tuple[Act, ...] = ()
    faults: tuple[Fault, ...] = ()
    members: int = 0
    stored: bool = False
    window: int = 0
    steady: bool = False

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes there are."""
        domains = sorted({domain for _, domain in self.runtimes})
        return tuple(name for domain in domains for name in self.nodes_of(domain))

    def nodes_of(self, domain: int) -> tuple[str, ...]:
        """The nodes of a domain."""
        if not self.members:
            return (f"n{domain}",)
        return tuple(f"n{domain}{letter}" for letter in ascii_lowercase[: self.members])

    @property
    def size(self) -> int:
        """How many things it says: what shrinking makes smaller."""
        counts = sum(act.count for act in self.acts)
        return len(self.runtimes) + len(self.acts) + len(self.faults) + counts


_FORM: Final = cattrs.Converter()


def write_plan(plan: Plan) -> str:
    """Write a plan as JSON, one thing a line."""
    reported = _FORM.unstructure(plan)
    lines = []
    for name, value in reported.items():
        if name in {"acts", "faults"}:
            rows = ",\n".join(f"  {json.dumps(row)}" for row in value)
            lines.append(f'"{name}": [\n{rows}\n ]' if rows else f'"{name}": []')
        else:
            lines.append(f'"{name}": {json.dumps(value)}')
    return "{" + ",\n ".join(lines) + "}\n"


def read_plan(text: str) -> Plan:
    """Read what `write_plan` wrote."""
    return _FORM.structure(json.loads(text), Plan)
