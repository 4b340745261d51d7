"""Modules of tests, compiled once for all workers of a run.

pytest rewrites their asserts before it compiles them, which takes ten seconds of processor time for
all of them. Workers begin at the same time: in a new checkout, each would compile all of them.
"""

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from _pytest.assertion import rewrite


def compile_tests(config, sources: Iterable[Path]) -> None:
    """Write the compiled modules that are missing, or older than their sources.

    A module that cannot be compiled, or written, is left to its collection, which says why.
    """
    if sys.dont_write_bytecode:
        return
    for source in sources:
        if compiled(source) is None:
            with suppress(OSError, SyntaxError, ValueError):
                _compile(config, source)


def _compile(config, source: Path) -> None:
    stat, code = rewrite._rewrite_test(source, config)
    place = _place(source)
    place.parent.mkdir(parents=True, exist_ok=True)
    rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, stat, place)


def compiled(source: Path):
    """Return the code that pytest takes without compiling it, if it stands there."""
    return rewrite._read_pyc(source, _place(source))


def _place(source: Path) -> Path:
    return rewrite.get_cache_dir(source) / f"{source.stem}{rewrite.PYC_TAIL}"
