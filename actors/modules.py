"""Import modules when they are first needed."""

import gc
from importlib import import_module


def import_name(module: str, name: str) -> object:
    """Import a module without garbage collection, and return the value of one of its names.

    The objects that a module creates live as long as the process, so that collections during the
    import would find nothing; they take a sixth of the time.

    Args:
        module: Name of the module.
        name: Name in the module.

    Raises:
        ImportError: There is no such module, or it cannot be imported.
        KeyError: The module has no such name.
    """
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        value: object = vars(import_module(module))[name]
    finally:
        if is_collecting:
            gc.enable()
    return value
