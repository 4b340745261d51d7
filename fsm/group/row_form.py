"""Encoding and decoding of the rows that nodes of a group keep in the engine, their shared store.

The value of a row is a JSON object, for a file of the catalogue followed by a package. Rows of an
unknown form are refused: another program, or a newer version, may write to the same engine.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar, assert_never

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
"""Number of bytes of a stored digest of a session token."""


def write_row(row: kinds.GroupRow) -> bytes:
    """Return a row encoded as its value in the shared store."""
    return write_file(row) if isinstance(row, CatalogueRow) else orjson.dumps(_fields(row))


_Plain: TypeAlias = (
    kinds.NodeRow | kinds.SessionRow | kinds.OwnerRow | kinds.PathRow | kinds.NameRow | PolicyRow
)
"""Rows whose value is JSON only, without a package."""


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
                **_encode_about(address),
            }
        case kinds.PathRow(resource, holder):
            value = {"boot": holder.boot, **_encode_about(resource)}
        case kinds.NameRow(name):
            value = _name(name)
        case PolicyRow():
            value = write_policies(row)
        case _:
            assert_never(row)
    return value


def _encode_about(address: str) -> JsonObject:
    return {} if kinds.brief(address) == address else {"about": address}


def _session(row: kinds.SessionRow) -> JsonObject:
    kept, identity = row.kept, row.identity
    return {
        "node": row.holder.node,
        "boot": row.holder.boot,
        "epoch": row.epoch,
        "form": row.form.value,
        "stub": row.stub,
        "kept": None if kept is None else _encode_kept(kept),
        "identity": None if identity is None else _identity(identity),
    }


def _encode_kept(kept: KeptSession) -> JsonObject:
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
    """Decode a row of the shared store.

    Args:
        key: Key of the row.
        value: Value of the row.

    Raises:
        RowRefusedError: Key or value have no form that this program writes.
    """
    kind, _, about = key.partition("/")
    if key == POLICY_KEY:
        return read_policies(value)
    if kind == kinds.Kind.CATALOGUE:
        if (file := read_file(about, value)) is None:
            raise kinds.RowRefusedError(key, kinds.RowRefusal.MALFORMED)
        return file
    if kind not in _READERS:
        raise kinds.RowRefusedError(key, kinds.RowRefusal.UNKNOWN_KIND)
    if len(value) > GROUP_ROW_BYTES:
        raise kinds.RowRefusedError(key, kinds.RowRefusal.TOO_LARGE)
    try:
        return _READERS[kind](about, _object(orjson.loads(value) if about else None))
    except (KeyError, ValueError) as exc:
        raise kinds.RowRefusedError(key, kinds.RowRefusal.MALFORMED) from exc


_Fields: TypeAlias = Mapping[str, Json]
_T = TypeVar("_T")


def _read_node(about: str, fields: _Fields) -> kinds.NodeRow:
    holder, report = _holder(about, fields["boot"]), _read_report(fields.get("report"))
    return kinds.NodeRow(holder, _of(str, fields["address"]), _of(bool, fields["leaving"]), report)


_FIGURE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def _read_report(value: Json) -> kinds.NodeReport | None:
    """Decode a node's report; None: it is unreadable, but the node is still a member."""
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


def _read_session(about: str, fields: _Fields) -> kinds.SessionRow:
    kept, identity = fields["kept"], fields["identity"]
    return kinds.SessionRow(
        about,
        _holder(fields["node"], fields["boot"]),
        _number(fields["epoch"]),
        PeerForm(_of(str, fields["form"])),
        _of(str, fields["stub"]),
        None if kept is None else _read_kept(about, _object(kept)),
        None if identity is None else _read_identity(_object(identity)),
    )


def _read_kept(runtime: str, fields: _Fields) -> KeptSession:
    return KeptSession(
        runtime,
        _digest(fields["digest"]),
        _digest(fields["previous"]) if fields["previous"] != "" else b"",
        _of(bool, fields["takenUp"]),
        key=_text_or_none(fields["key"]),
        displaced=tuple(_digest(digest) for digest in _texts(fields["displaced"])),
    )


def _read_identity(fields: _Fields) -> Identity:
    return Identity(
        user=_of(str, fields["user"]),
        issuer=_of(str, fields["issuer"]),
        until=_time(fields["until"]),
        roles=frozenset(_texts(fields["roles"])),
        runtime=_text_or_none(fields["runtime"]),
        addresses=frozenset(_texts(fields.get("addresses", []))),
        login=_text_or_none(fields["login"]),
    )


def _read_owner(about: str, fields: _Fields) -> kinds.OwnerRow:
    address, runtime = _of(str, kinds.full(about, fields.get("about"))), _of(str, fields["runtime"])
    block, is_bound = _text_or_none(fields["block"]), _of(bool, fields["bound"])
    return kinds.OwnerRow(address, runtime, block, is_bound)


def _read_path(about: str, fields: _Fields) -> kinds.PathRow:
    stands, _, node = about.rpartition("/")
    if not (resource := kinds.full(stands, fields.get("about"))):
        raise ValueError(about)
    return kinds.PathRow(resource, _holder(node, fields["boot"]))


def _read_name(about: str, fields: _Fields) -> kinds.NameRow:
    owner = Owner(_of(str, fields["issuer"]), _of(str, fields["user"]))
    left, is_released = _time(fields["left"]), _of(bool, fields["released"])
    return kinds.NameRow(NameKept(about, owner, left, is_released))


_READERS: Final[Mapping[str, Callable[[str, _Fields], kinds.GroupRow]]] = {
    kinds.Kind.NODE: _read_node,
    kinds.Kind.SESSION: _read_session,
    kinds.Kind.OWNER: _read_owner,
    kinds.Kind.PATH: _read_path,
    kinds.Kind.NAME: _read_name,
}


# ---- values of fields; each function raises ValueError for another type


def _of(kind: type[_T], value: Json) -> _T:
    if not isinstance(value, kind):
        raise ValueError(value)  # noqa: TRY004 - the same error for every malformed row
    return value


def _text_or_none(value: Json) -> str | None:
    return None if value is None else _of(str, value)


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(_of(str, text) for text in (value if isinstance(value, list) else [None]))


def _object(value: Json) -> _Fields:
    if not isinstance(value, dict):
        raise ValueError(value)  # noqa: TRY004 - the same error for every malformed row
    return value


def _time(value: Json) -> float:
    """Return a stored time as a number; null stands for infinity."""
    match value:
        case None:
            return math.inf
        case float() | int() if not isinstance(value, bool):
            return float(value)
        case _:
            raise ValueError(value)


def _number(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(value)
    return value


def _digest(value: Json) -> bytes:
    digest = bytes.fromhex(_of(str, value))
    if len(digest) != _DIGEST:
        raise ValueError(value)
    return digest


def _holder(node: Json, boot: Json) -> kinds.Holder:
    if not isinstance(node, str) or not kinds.is_node_id(node):
        raise ValueError(node)
    return kinds.Holder(node, _number(boot))
