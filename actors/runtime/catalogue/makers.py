"""What fetched stubs are made by, and where it is told what became of them."""

from collections.abc import Callable, Mapping
from typing import TypeAlias, final

import attrs

from actors.kit.counting.counters import Counters
from actors.kit.trace import Tracer
from actors.runtime.stubs.stub import StubFactory

__all__ = ["CodeStubs", "Evidence", "StubMakers"]

CodeStubs: TypeAlias = Callable[[bytes, str, tuple[str, ...]], StubFactory]
"""Makes a stub of a package: its bytes, its entry point, the places it may dial."""


@final
@attrs.frozen
class StubMakers:
    """What stubs are made by.

    Attributes:
        shipped: Those that a profile may name.
        code: Runs code in a sandbox; None: none is run.
    """

    shipped: Mapping[str, StubFactory]
    code: CodeStubs | None = None


@final
@attrs.frozen
class Evidence:
    """Where it is told what was fetched and what became of it."""

    tracer: Tracer
    counters: Counters
