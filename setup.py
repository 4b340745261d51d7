"""Builds the wheel; with `PROTOFLY_COMPILE=1`, one whose busiest modules are compiled by mypyc.

The sources are in both wheels: where a compiled module does not fit the interpreter, its source is
imported. mypyc reads the types of all dependencies, so these are to be installed, and the build is
not isolated (`make wheel-compiled`).
"""

import os
import sys
from typing import Final

from setuptools import Extension, setup

COMPILED: Final = (
    "actors/kit/supervision/delivery.py",
    "actors/node/bus.py",
    "actors/node/links/acceptor.py",
    "actors/node/links/port.py",
    "actors/node/links/upstream.py",
    "actors/node/session/exchange.py",
    "actors/node/session/fan_out.py",
    "actors/node/trace.py",
    "actors/policy/engine.py",
    "actors/runtime/bus/admission.py",
    "actors/runtime/bus/arrivals.py",
    "actors/runtime/bus/delivery.py",
    "actors/runtime/bus/fair_queue.py",
    "actors/runtime/bus/forwarding.py",
    "actors/runtime/bus/message_bus.py",
    "actors/runtime/bus/messages.py",
    "actors/runtime/bus/open_requests.py",
    "actors/runtime/bus/outbound.py",
    "actors/runtime/policing.py",
    "fsm/bus/forward_rules.py",
    "fsm/bus/held_paths.py",
    "fsm/bus/listeners.py",
    "fsm/bus/node_routing.py",
    "fsm/bus/remembered_routing.py",
    "fsm/bus/transactions.py",
    "fsm/engine.py",
    "fsm/limits/__init__.py",
    "fsm/limits/shares.py",
    "fsm/limits/timers.py",
    "fsm/limits/unauthenticated_links.py",
    "specs/addresses/address.py",
    "specs/child.py",
    "specs/dialects/normalise.py",
    "specs/dialects/spellings.py",
    "specs/reply_code.py",
    "specs/routing.py",
    "transports/codec.py",
)
"""What a message runs through, as far as mypyc takes it.

It takes no class whose fields are `attrs.field`, none that others outside this list derive from or
subscript, no asynchronous generator, and no pattern with a star for a tuple. A class that cores of
a composition hold is copied by `fsm.frozen`: its constructor needs no arguments.
"""

_BUILDING: Final = frozenset({"bdist_wheel", "build_ext"})
"""Commands that want what is compiled; others run before them, and mypyc takes a while."""


def _modules() -> list[Extension]:
    if not (os.environ.get("PROTOFLY_COMPILE") and _BUILDING & set(sys.argv)):
        return []
    from mypyc.build import mypycify  # noqa: PLC0415 - not there in an isolated build

    options = ("--python-executable", sys.executable)
    return mypycify([*options, *COMPILED], opt_level="2", multi_file=True)


if __name__ == "__main__":  # a test reads the list
    setup(ext_modules=_modules())
