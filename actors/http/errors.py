"""Errors of an HTTP service that its operator has to correct."""

from typing import final

from specs.errors import PlaceError, ProtoflyError

__all__ = ["HttpPlaceError", "OpenMetricsError"]


@final
class OpenMetricsError(ProtoflyError):
    """Metrics would be readable by every client that reaches the place."""

    def __init__(self, where: str) -> None:
        super().__init__(f"metrics at {where} can be read from other machines without a token")
        self.where = where


@final
class HttpPlaceError(PlaceError):
    """Health and metrics cannot be served there."""

    summary = "cannot serve health and metrics on {}"
