"""Hyperties that never run: their own code is at fault."""

from typing_extensions import override

from actors.runtime.hyperty.hyperty import Hyperty


class Unmade(Hyperty):
    """Cannot be made."""

    def __init__(self):
        raise KeyError("no such setting")


class Unstarted(Hyperty):
    """Cannot be started."""

    @override
    async def started(self):
        raise ZeroDivisionError("nothing to divide by")
