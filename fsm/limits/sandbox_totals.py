"""What all sandbox processes of one host may use together, and which more may start (T16).

Where the kernel bounds all of them as one group, only their number counts. Elsewhere it bounds
each by itself: then a sandbox may start only if the limits of all fit into the totals.
"""

from typing import Final, final

import attrs

from specs.limits.foreign_code import (
    SANDBOXES,
    SANDBOXES_CPU,
    SANDBOXES_CPU_LEAST,
    SANDBOXES_MEMORY,
    SANDBOXES_SPAN,
)
from specs.limits.protocol import SANDBOX_CPU, SANDBOX_MEMORY

MIB: Final = 1_048_576
"""Bytes of a mebibyte."""


@final
@attrs.frozen
class SandboxTotals:
    """What all sandbox processes of a runtime may use together.

    Attributes:
        memory: Bytes of memory; at least those of one process, `SANDBOX_MEMORY`.
        cpu: Processors.

    Raises:
        TypeError: A value is no number.
        ValueError: There is less than one process may use.
    """

    memory: int = attrs.field(
        default=SANDBOXES_MEMORY,
        validator=[attrs.validators.instance_of(int), attrs.validators.ge(SANDBOX_MEMORY)],
    )
    cpu: float = attrs.field(
        default=SANDBOXES_CPU,
        validator=[
            attrs.validators.instance_of((int, float)),
            attrs.validators.ge(SANDBOXES_CPU_LEAST),
        ],
    )


TOTALS: Final = SandboxTotals()
"""Those of a host that is not configured."""


@final
class SandboxAdmission:
    """The sandbox processes of one host.

    Args:
        totals: What they may use together.
        is_grouped: Whether the kernel bounds them together.
    """

    def __init__(self, totals: SandboxTotals, *, is_grouped: bool) -> None:
        self._totals = totals
        self._is_grouped = is_grouped
        self._running = 0

    def enter(self) -> str | None:
        """Count one more; if it may not start, return why, and count none."""
        refusal = self._refusal()
        if refusal is None:
            self._running += 1
        return refusal

    def leave(self) -> None:
        """Note that one has ended."""
        self._running -= 1

    def _refusal(self) -> str | None:
        count, totals = self._running + 1, self._totals
        if count > SANDBOXES:
            return f"{SANDBOXES} sandbox processes run already"
        if self._is_grouped:
            return None
        if count * SANDBOX_MEMORY > totals.memory:
            return (
                f"all sandboxes together may use {totals.memory // MIB} MiB of memory, and "
                f"{self._running} of {SANDBOX_MEMORY // MIB} MiB each run already; "
                "raise --sandbox-memory (RuntimeConfig.sandboxes)"
            )
        if count * SANDBOX_CPU > totals.cpu * SANDBOXES_SPAN:
            return (
                f"all sandboxes together may use {totals.cpu:g} processors of a day, and "
                f"{self._running} of {SANDBOX_CPU} s each run already; "
                "raise --sandbox-cpu (RuntimeConfig.sandboxes)"
            )
        return None
