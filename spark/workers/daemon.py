"""The process that forks Python workers, a replacement for PySpark's with a faster start of tasks.

PySpark names an archive of itself first in the path. It has no compiled modules, and its directory
is read anew for each task (which took 40 ms). Here the installed package is used. Pandas, which no
fold needs, but which Arrow loads where it is installed, is hidden (which took 300 ms of each
worker). What all folds need, and what starts no thread, is loaded before workers are forked.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from types import ModuleType

from typing_extensions import override


class _WithoutPandas(MetaPathFinder):
    """A module finder that reports Pandas as not installed."""

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


if __name__ == "__main__":
    archived, sys.path[:] = sys.path[:], [each for each in sys.path if not each.endswith(".zip")]
    if find_spec("pyspark") is None:
        sys.path[:] = archived
    sys.meta_path.insert(0, _WithoutPandas())
    import_module("fsm.judge.verdict")
    import_module("pyspark.daemon").manager()
