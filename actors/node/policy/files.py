"""Reading policy files: TOML, one policy set each (POL-03)."""

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from actors.node.errors import PolicyFileError
from fsm.policy.errors import BadPolicyError
from fsm.policy.model import PolicySet
from fsm.policy.reading import read_set
from specs.limits.policy import MAX_POLICY_BYTES, MAX_POLICY_SETS

__all__ = ["read_policies", "read_policy"]


def read_policies(files: Iterable[Path]) -> tuple[PolicySet, ...]:
    """Read policy files, all or none; a folder stands for the `*.toml` in it, by name.

    Raises:
        PolicyFileError: One of them cannot be used, or two sets have the same id.
    """
    found: dict[str, PolicySet] = {}
    for path in _listed(files):
        one = read_policy(path)
        other = found.setdefault(one.id, one)
        if other is not one:
            what = f"its id {one.id!r} is that of {other.source} too; give it another"
            raise PolicyFileError(path, what)
        if len(found) > MAX_POLICY_SETS:
            raise PolicyFileError(path, f"more than {MAX_POLICY_SETS} sets are too many")
    return tuple(found.values())


def read_policy(path: Path) -> PolicySet:
    """Read one policy file.

    Raises:
        PolicyFileError: It cannot be used.
    """
    try:
        return read_set(_document(path), str(path))
    except BadPolicyError as exc:
        what = f"{exc.way}: {exc.reason}" if exc.way else exc.reason
        raise PolicyFileError(path, what) from exc


def _listed(files: Iterable[Path]) -> Sequence[Path]:
    listed: list[Path] = []
    for path in files:
        inside = sorted(path.glob("*.toml")) if path.is_dir() else [path]
        if not inside:
            raise PolicyFileError(path, "no *.toml is in that folder; put one there")
        listed += inside
    return listed


def _document(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_POLICY_BYTES + 1)
    except OSError as exc:
        raise PolicyFileError(path, f"{exc.strerror}; name another") from exc
    if len(content) > MAX_POLICY_BYTES:
        what = f"it has more than {MAX_POLICY_BYTES} bytes; make it several files"
        raise PolicyFileError(path, what)
    try:
        return tomllib.loads(content.decode())
    except RecursionError as exc:
        raise PolicyFileError(path, "its tables or lists are nested too deep") from exc
    except ValueError as exc:
        # What is no UTF-8, no TOML, or a number of thousands of digits.
        raise PolicyFileError(path, f"it is no TOML: {exc}; correct it") from exc
