"""What an identity connector says of somebody: the value of its answer (M-55)."""

import math

from specs.addresses.address import host_of, parse
from specs.errors import BadMessageError, BadUrlError
from specs.identity import Identity
from specs.jsonvalue import Json, JsonObject

__all__ = ["read_identity", "written_identity"]


def written_identity(identity: Identity) -> JsonObject:
    """Write what is known of somebody."""
    roles: list[Json] = [*sorted(identity.roles)]
    written: JsonObject = {"user": identity.user, "issuer": identity.issuer, "roles": roles}
    if math.isfinite(identity.until):
        written["until"] = identity.until
    if identity.runtime is not None:
        written["runtime"] = identity.runtime
    return written


def read_identity(value: Json, until: float) -> Identity:
    """Read what a connector says of somebody; only the user is necessary.

    Args:
        value: The value of its answer.
        until: When the login ends at the latest, seconds since the epoch.

    Raises:
        BadMessageError: It names no user, or is not what it should be.
    """
    if not isinstance(value, dict):
        raise BadMessageError("value is no object")
    user = _address(value.get("user"), "user")
    issuer, end = value.get("issuer", host_of(user)), value.get("until", until)
    roles, runtime = value.get("roles", []), value.get("runtime")
    if not isinstance(issuer, str) or not isinstance(roles, list):
        raise BadMessageError("value.issuer or value.roles is not what it should be")
    if isinstance(end, bool) or not isinstance(end, int | float):
        raise BadMessageError("value.until is no time")
    return Identity(
        user=user,
        issuer=issuer,
        until=min(until, end),
        roles=frozenset(role for role in roles if isinstance(role, str)),
        runtime=None if runtime is None else _address(runtime, "runtime"),
    )


def _address(value: Json, name: str) -> str:
    try:
        return parse(value).text if isinstance(value, str) else _missing(name)
    except BadUrlError as exc:
        raise BadMessageError(f"value.{name} {exc}") from exc


def _missing(name: str) -> str:
    raise BadMessageError(f"value.{name} is no address")
