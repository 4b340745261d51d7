"""Errors of a message node that its operator has to act on."""

from typing import final

from specs.errors import PlaceError, ProtoflyError


@final
class RegistryFileError(PlaceError, public=True):
    """The file of the domain registry cannot be used."""

    summary = "cannot use the registry file {}"


@final
class StateFileError(PlaceError, public=True):
    """The file of the node's sessions cannot be used."""

    summary = "cannot use the state file {}"


@final
class AddressTakenError(ProtoflyError, public=True):
    """Two parts of a node want to answer at one address."""

    def __init__(self, address: str, part: str, holder: str) -> None:
        super().__init__(f"{part} cannot answer at {address}: {holder} answers there")
        self.address = address
        self.part = part
        self.holder = holder
