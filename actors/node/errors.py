"""The errors of a message node that its operator has to act on."""

from pathlib import Path
from typing import final

from specs.errors import ProtoflyError

__all__ = [
    "AddressTakenError",
    "HttpPlaceError",
    "OpenMetricsError",
    "PolicyFileError",
    "RegistryFileError",
]


@final
class RegistryFileError(ProtoflyError):
    """The file of the domain registry cannot be used.

    Attributes:
        path: The file.
        reason: Why not, as half a sentence.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot use the registry file {path}: {reason}")
        self.path = path
        self.reason = reason


@final
class OpenMetricsError(ProtoflyError):
    """Metrics would be readable by everybody who reaches the place.

    Attributes:
        where: The place asked for.
    """

    def __init__(self, where: str) -> None:
        super().__init__(f"metrics at {where} would be readable from other machines by anybody")
        self.where = where


@final
class HttpPlaceError(ProtoflyError):
    """Health and metrics cannot be served there.

    Attributes:
        where: The place asked for.
        reason: Why not, as half a sentence.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"cannot serve health and metrics on {where}: {reason}")
        self.where = where
        self.reason = reason


@final
class PolicyFileError(ProtoflyError):
    """A policy file cannot be used, and so none of them is.

    Attributes:
        path: The file.
        reason: Why not, and what to do, as half a sentence.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot use the policy file {path}: {reason}")
        self.path = path
        self.reason = reason


@final
class AddressTakenError(ProtoflyError):
    """Two parts of a node want to answer at one address.

    Attributes:
        address: The address.
        part: Who wants to.
        holder: Who does.
    """

    def __init__(self, address: str, part: str, holder: str) -> None:
        super().__init__(f"{part} cannot answer at {address}: {holder} answers there")
        self.address = address
        self.part = part
        self.holder = holder
