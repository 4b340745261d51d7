"""The form of rows in the engine.

A value is a JSON object, and, of a file of the catalogue, a package behind it. A reader refuses
what is none of these: another program, or a newer one, may write to the same engine.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, assert_never

import orjson

from fsm.group import kinds
from fsm.group.catalogue import CatalogueRow, read_file, write_file
from fsm.group.policies import POLICY_KEY, PolicyRow, read_policies, write_policies
from fsm.session.node_session_io import KeptSession, PeerForm
from fsm.session.runtime_names import NameKept, Owner
from specs.identity import Identity
from specs.jsonvalue import Json, JsonObject
from specs.limits.group import GROUP_FIGURES, GROUP_ROW_BYTES

_DIGEST: Final = 32
"""Bytes of a digest."""


def write_row(row: kinds.GroupRow) -> bytes:
    """Return the value of a row in the engine."""
    return write_file(row) if isinstance(row, CatalogueRow) else orjson.dumps(_fields(row))


_Plain: TypeAlias = (
    kinds.NodeRow | kinds.SessionRow | kinds.OwnerRow | kinds.PathRow | kinds.NameRow | PolicyRow
)
"""Rows whose value is JSON and nothing else."""


def _fields(row: _Plain) -> JsonObject:
    match row:
        case kinds.NodeRow(holder, address, is_leaving, report):
            value: JsonObject = {"boot": holder.boot, "address": address, "leaving": is_leaving}
            if report is not None:
                value["report"] = {"up": report.up, "figures": dict[str, Json](report.figures)}
        case kinds.SessionRow():
            value = _session(row)
        case kinds.OwnerRow(address, runtime, block, is_bound):
            value = {
                "runtime": runtime,
                "block": block,
                "bound": is_bound,
                "offers": None,  # older nodes of the group require it
                **_said(address),
            }
        case kinds.PathRow(resource, holder):
            value = {"boot": holder.boot, **_said(resource)}
        case kinds.NameRow(name):
            value = _name(name)
        case PolicyRow():
            value = write_policies(row)
        case _:
            assert_never(row)
    return value


def _said(address: str) -> JsonObject:
    return {} if kinds.brief(address) == address else {"about": address}


def _session(row: kinds.SessionRow) -> JsonObject:
    kept, identity = row.kept, row.identity
    return {
        "node": row.holder.node,
        "boot": row.holder.boot,
        "epoch": row.epoch,
        "form": row.form.value,
        "stub": row.stub,
        "kept": None if kept is None else _kept(kept),
        "identity": None if identity is None else _identity(identity),
    }


def _kept(kept: KeptSession) -> JsonObject:
    return {
        "digest": kept.digest.hex(),
        "previous": kept.previous.hex(),
        "takenUp": kept.is_taken_up,
        "key": kept.key,
        "displaced": [digest.hex() for digest in kept.displaced],
    }


def _identity(identity: Identity) -> JsonObject:
    written: JsonObject = {
        "user": identity.user,
        "issuer": identity.issuer,
        "until": _finite(identity.until),
        "roles": [*sorted(identity.roles)],
        "runtime": identity.runtime,
        "login": identity.login,
    }
    if identity.addresses:
        written["addresses"] = [*sorted(identity.addresses)]
    return written


def _name(name: NameKept) -> JsonObject:
    return {
        "issuer": name.owner.issuer,
        "user": name.owner.user,
        "left": _finite(name.left),
        "released": name.is_released,
    }


def _finite(time: float) -> float | None:
    return time if math.isfinite(time) else None


# ---- read


def read_row(key: str, value: bytes) -> kinds.GroupRow:
    """Read a row of the engine.

    Args:
        key: Its key.
        value: Its value.

    Raises:
        RowRefusedError: It is none of ours.
    """
    kind, _, about = key.partition("/")
    if key == POLICY_KEY:
        return read_policies(value)
    if kind == kinds.Kind.CATALOGUE:
        return _read_file(key, about, value)
    if kind not in _READERS:
        raise kinds.RowRefusedError(key, kinds.RowRefusal.UNKNOWN_KIND)
    if len(value) > GROUP_ROW_BYTES:
        raise kinds.RowRefusedError(key, kinds.RowRefusal.TOO_LARGE)
    try:
        fields = orjson.loads(value)
        row = _READERS[kind](about, fields) if isinstance(fields, dict) and about else None
    except ValueError:
        row = None
    if row is None:
        raise kinds.RowRefusedError(key, kinds.RowRefusal.MALFORMED)
    return row


def _read_file(key: str, about: str, value: bytes) -> CatalogueRow:
    row = read_file(about, value)
    if row is None:
        raise kinds.RowRefusedError(key, kinds.RowRefusal.MALFORMED)
    return row


_Fields: TypeAlias = Mapping[str, Json]


def _read_node(about: str, fields: _Fields) -> kinds.NodeRow | None:
    holder = _holder(about, fields.get("boot"))
    match fields:
        case {"address": str(address), "leaving": bool(is_leaving)} if holder is not None:
            return kinds.NodeRow(holder, address, is_leaving, _read_report(fields.get("report")))
        case _:
            return None


_FIGURE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def _read_report(value: Json) -> kinds.NodeReport | None:
    """Read a report; a node whose report cannot be read is a member all the same."""
    match value:
        case {"up": float() | int() as up, "figures": dict(figures)} if not isinstance(up, bool):
            read = {name: _count(name, count) for name, count in figures.items()}
            counts = {name: count for name, count in read.items() if count is not None}
            is_good = len(counts) == len(read) <= GROUP_FIGURES and 0 <= up < math.inf
            return kinds.NodeReport(float(up), counts) if is_good else None
        case _:
            return None


def _count(name: str, value: Json) -> int | None:
    is_named = _FIGURE.fullmatch(name) is not None
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_named and is_count and isinstance(value, int) else None


def _read_session(about: str, fields: _Fields) -> kinds.SessionRow | None:
    holder = _holder(fields.get("node"), fields.get("boot"))
    epoch = _number(fields.get("epoch"))
    match fields:
        case {"form": str(form), "stub": str(stub), "kept": kept, "identity": identity}:
            if holder is None or epoch is None:
                return None
            session = None if kept is None else _read_kept(about, kept)
            login = None if identity is None else _read_identity(identity)
            return kinds.SessionRow(about, holder, epoch, PeerForm(form), stub, session, login)
        case _:
            return None


def _read_kept(runtime: str, value: Json) -> KeptSession:
    match value:
        case {
            "digest": str(digest),
            "previous": str(previous),
            "takenUp": bool(is_taken_up),
            "key": str() | None as key,
            "displaced": list(displaced),
        }:
            return KeptSession(
                runtime,
                _digest(digest),
                _digest(previous) if previous else b"",
                is_taken_up,
                key=key,
                displaced=tuple(_digest(digest) for digest in _texts(displaced)),
            )
        case _:
            raise ValueError(value)


def _texts(value: object) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(value)
    return tuple(str(text) for text in texts)


def _read_identity(value: Json) -> Identity:
    match value:
        case {
            "user": str(user),
            "issuer": str(issuer),
            "until": float() | int() | None as until,
            "roles": list(roles),
            "runtime": str() | None as runtime,
            "login": str() | None as login,
            **more,
        } if not isinstance(until, bool):
            return Identity(
                user=user,
                issuer=issuer,
                until=_time(until),
                roles=frozenset(_texts(roles)),
                runtime=runtime,
                addresses=frozenset(_texts(more.get("addresses", []))),
                login=login,
            )
        case _:
            raise ValueError(value)


def _read_owner(about: str, fields: _Fields) -> kinds.OwnerRow | None:
    address = kinds.full(about, fields.get("about"))
    match fields:
        case {
            "runtime": str(runtime),
            "block": str() | None as block,
            "bound": bool(is_bound),
        } if address is not None:
            return kinds.OwnerRow(address, runtime, block, is_bound)
        case _:
            return None


def _read_path(about: str, fields: _Fields) -> kinds.PathRow | None:
    stands, _, node = about.rpartition("/")
    resource = kinds.full(stands, fields.get("about"))
    holder = _holder(node, fields.get("boot"))
    return kinds.PathRow(resource, holder) if resource and holder is not None else None


def _read_name(about: str, fields: _Fields) -> kinds.NameRow | None:
    match fields:
        case {
            "issuer": str(issuer),
            "user": str(user),
            "left": float() | int() | None as left,
            "released": bool(is_released),
        } if not isinstance(left, bool):
            return kinds.NameRow(NameKept(about, Owner(issuer, user), _time(left), is_released))
        case _:
            return None


def _time(finite: float | None) -> float:
    return math.inf if finite is None else float(finite)


_READERS: Final[Mapping[str, Callable[[str, _Fields], kinds.GroupRow | None]]] = {
    kinds.Kind.NODE: _read_node,
    kinds.Kind.SESSION: _read_session,
    kinds.Kind.OWNER: _read_owner,
    kinds.Kind.PATH: _read_path,
    kinds.Kind.NAME: _read_name,
}


def _digest(text: str) -> bytes:
    digest = bytes.fromhex(text)
    if len(digest) != _DIGEST:
        raise ValueError(text)
    return digest


def _holder(node: Json, boot: Json) -> kinds.Holder | None:
    number = _number(boot)
    if not isinstance(node, str) or not kinds.is_node_id(node) or number is None:
        return None
    return kinds.Holder(node, number)


def _number(value: Json) -> int | None:
    is_one = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_one and isinstance(value, int) else None
