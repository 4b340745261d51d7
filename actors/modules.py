"""Importing modules when they are first needed."""

import gc
from importlib import import_module


def import_name(module: str, name: str) -> object:
    """Import a module, without garbage collection; return what a name stands for in it.

    What modules create lives as long as the process. Collections among it take a sixth of
    the time.

    Args:
        module: Its name.
        name: One of its names.

    Raises:
        ImportError: There is no such module, or it cannot be imported.
        KeyError: It has no such name.
    """
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        found: object = vars(import_module(module))[name]
    finally:
        if is_collecting:
            gc.enable()
    return found
