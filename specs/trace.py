"""Records of a trace: the one flat form in which processes record all their events (OBS-01).

A process writes its trace into numbered files below a directory:
`DIR/run=<start>-<id>/node=<name>/part-00000.jsonl`. Each start of a process is a run.
"""

import re
from enum import StrEnum
from typing import Final
from urllib.parse import quote, unquote

import attrs

SCHEMA: Final = "protofly.trace/1"
"""Name and version of the format of trace records, written in the first record of each process."""

_FOLDERS: Final = re.compile(r"(?:(?:^|/)run=(?P<run>[^/]+))?(?:^|/)node=(?P<node>[^/]+)/[^/]*$")

ABSENT: Final = "[*]"
"""Name in a trace for the state of an entity that does not exist, before or after its life."""

BODIES: Final = "bodies"
"""Value of `kind` in the first record of a process that records the bodies of messages, too."""


class Kind(StrEnum):
    """Subjects of trace records (field `k`): what a record is about."""

    START = "start"
    END = "end"
    DROPPED = "dropped"
    MSG = "msg"
    AUTHZ = "authz"
    RESOLVE = "resolve"
    STATE = "state"
    TABLE = "table"
    LINK = "link"
    SESSION = "session"
    OBJ = "obj"
    DESCRIPTOR = "descriptor"
    FAULT = "fault"


class Op(StrEnum):
    """Events that trace records report (field `op`), grouped by the subject."""

    # state
    STEP = "step"
    REFUSED = "refused"
    # msg
    SUBMIT = "submit"
    ADMIT = "admit"
    DENY = "deny"
    DELIVER = "deliver"
    CALLBACK = "callback"
    XMIT = "xmit"
    RCV = "rcv"
    PUBLISH = "publish"
    RELAY = "relay"
    QUEUE = "queue"
    FLUSH = "flush"
    SYNTH = "synth"
    DROP = "drop"
    # resolve
    BEGIN = "start"
    DONE = "done"
    # table
    ADD = "add"
    UPD = "upd"
    DEL = "del"
    # link
    OPEN = "open"
    CLOSE = "close"
    # obj
    WRITE = "write"
    APPLY = "apply"


@attrs.frozen(slots=True, kw_only=True)
class Fact:
    """One event that a component reports to the trace, without process, actor and time.

    Only the fields for its subject `k` are set; the protocol's page about traces describes them.

    Attributes:
        key: Key of the entity, or of the table row: texts joined by `|`.
        old: State before a transition; `[*]` for an entity that did not exist.
        new: State after a transition; absent when the transition was refused.
        cause: The trigger of the transition, as the state machine's table names it.
        why: The reason for people, as half a sentence.
        digest: Hash of a message without `via`, `auth` and tokens.
        body: Body of a message of the framework, as redacted JSON; only on demand.
        via: Stubs that a message has crossed, in order, joined by `|` (I-L1..I-L4).
        user: User who sent a message, if the reporter knows: the first 16 hexadecimal digits of the
            SHA-256 of the address, or the address if names were asked for.
        obligations: Obligations that were fulfilled with a decision, joined by commas (I-K3).
        a: Reporter of a link or session: a node, or the runtime at this end.
        b: The runtime at the other end.
        kind: For a link `mn` or `p2p`; for a session, the form of its runtime; for a search for a
            route, the permitted results; for the start, `BODIES` or nothing; for a message
            `durable`, if its sender wants the message to be kept until it is answered.
    """

    k: Kind
    op: Op | None = None
    machine: str | None = None
    key: str | None = None
    old: str | None = None
    new: str | None = None
    cause: str | None = None
    why: str | None = None
    mid: str | None = None
    ref: str | None = None
    type: str | None = None
    id: int | None = None
    from_: str | None = None
    to: str | None = None
    code: int | None = None
    digest: str | None = None
    body: str | None = None
    via: str | None = None
    user: str | None = None
    by: str | None = None
    listener: str | None = None
    stub: str | None = None
    link: str | None = None
    seq: int | None = None
    reason: str | None = None
    direction: str | None = None
    decision: str | None = None
    policy: str | None = None
    obligations: str | None = None
    rid: int | None = None
    result: str | None = None
    table: str | None = None
    val: str | None = None
    writer: str | None = None
    a: str | None = None
    b: str | None = None
    kind: str | None = None
    targets: int | None = None
    version: int | None = None
    count: int | None = None


@attrs.frozen(slots=True, kw_only=True)
class Stamp:
    """The fields with which every trace record begins: process, actor and time.

    Records less than 50 us apart may have the time of the first one; `ln` gives their order.

    Attributes:
        run: Identifier of this start of the process, never reused; see `trace_folder`.
        node: Name of the process in the run, as in `node=<name>` of the path.
        ln: Number of the record, from 1 without gaps, within this run of the process.
        wall_ns: Nanoseconds since the epoch.
        mono_ns: Nanoseconds of the process's monotonic clock.
        t: Seconds of the Trio clock.
        actor: The reporting actor.
    """

    run: str
    node: str
    ln: int
    wall_ns: int
    mono_ns: int
    t: float
    actor: str


def trace_folder(run: str, node: str) -> str:
    """Return the folder for the trace files of one run of a process, relative to the directory."""
    return f"run={quote(run, safe='')}/node={quote(node, safe='')}"


def writer_of(part: str) -> tuple[str, str] | None:
    """Return the run and the process that the path of a trace file names; the run may be empty.

    None: the path names no process.
    """
    folders = _FOLDERS.search(part)
    return None if folders is None else (unquote(folders["run"] or ""), unquote(folders["node"]))
