"""What a hyperty is registered with, beyond its address (REG-07)."""

from typing import final

import attrs

__all__ = ["Profile"]


@final
@attrs.frozen
class Profile:
    """A hyperty as its owner describes it.

    Attributes:
        name: For people; need not be unique.
        descriptor: Catalogue address of what it is.
        resources: What it offers, such as `chat`; others search by it.
        data_schemes: Schemes of the data objects it deals with; likewise.
        address: The address it has to have again, kept by `Runtime.rest`; None: one
            that is kept for the same descriptor if there is one, else a new one.
    """

    name: str
    descriptor: str | None = None
    resources: tuple[str, ...] = ()
    data_schemes: tuple[str, ...] = ()
    address: str | None = None
