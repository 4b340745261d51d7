"""The pages /healthz and /readyz: whether the process lives, and whether it can serve."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final, TypeAlias, final

import trio

from actors.node.health.readiness import Part, Readiness
from actors.node.http.page import Page, told
from specs.jsonvalue import Json
from specs.limits.protocol import READY_TIMEOUT

__all__ = ["Probe", "ReadyPage", "health"]

Probe: TypeAlias = Callable[[], Awaitable[str | None]]
"""Has a part of the node show that it works; returns half a sentence if it does not."""

_ALIVE: Final = told(HTTPStatus.OK, {"status": "ok"})


async def health() -> Page:
    """Say that the process lives: whoever reads this has been answered by its loop."""
    return _ALIVE


@final
class ReadyPage:
    """Makes /readyz: what the parts say of themselves, and what they show when asked.

    Args:
        standing: What the parts say.
        probes: Asked only of parts that say nothing against themselves.
    """

    def __init__(self, standing: Readiness, probes: Mapping[Part, Probe]) -> None:
        self._standing = standing
        self._probes = probes

    async def __call__(self) -> Page:
        """Ask every part, all at once."""
        missing = dict(self._standing.missing)
        if Part.NODE not in missing:
            async with trio.open_nursery() as nursery:
                for part, probe in self._probes.items():
                    if part not in missing:
                        nursery.start_soon(self._ask, part, probe, missing)
        status = HTTPStatus.SERVICE_UNAVAILABLE if missing else HTTPStatus.OK
        return told(status, {"ready": not missing, "missing": _listed(missing)})

    async def _ask(self, part: Part, probe: Probe, missing: dict[Part, str]) -> None:
        why: str | None = f"no answer within {READY_TIMEOUT:g} s"
        with trio.move_on_after(READY_TIMEOUT):
            why = await probe()
        if why is not None:
            missing[part] = why


def _listed(missing: Mapping[Part, str]) -> list[Json]:
    return [{"part": str(part), "why": missing[part]} for part in Part if part in missing]
