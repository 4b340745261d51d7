"""The calls of a function, which stays what it is."""

import sys
from contextlib import contextmanager


@contextmanager
def calls_of(function):
    """Yield a list that gets the arguments of each call."""
    calls = []

    def note(frame, event, _):
        if event == "call" and frame.f_code is function.__code__:
            calls.append({**frame.f_locals})

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
