"""Tests of large tables whose cases take microseconds each, gathered into one test.

A test of its own costs five milliseconds of processor time, as each worker collects it and reports
it: ten times what such a case takes.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

C = TypeVar("C")


def for_each(cases: Iterable[C], named: Callable[[C], str] = str):
    """Make a test one that tries all cases, also after one has failed.

    As `pytest.mark.parametrize`, except that a test can ask for no fixtures. A tuple is given as
    several arguments. Each failure says which case it is of.

    Args:
        cases: All of them, at least one.
        named: What the failure of a case calls it.
    """
    table = list(cases)
    assert table

    def decorate(test):
        def tries_all():
            failures = []
            for case in table:
                try:
                    test(*case) if isinstance(case, tuple) else test(case)
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - all are shown
                    failure.add_note(f"case {named(case)}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} cases", failures)

        tries_all.__name__, tries_all.__qualname__ = test.__name__, test.__qualname__
        tries_all.__doc__, tries_all.__module__ = test.__doc__, test.__module__
        return tries_all

    return decorate
