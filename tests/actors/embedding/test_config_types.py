"""What a program needs to write the configuration of a node with types."""

import importlib
import sys
import typing

import attrs
import pytest

import actors
from actors.node.policy_hook import Policy as NodePolicy
from transports.engine.contract import Engine

OWN = ("actors", "fsm", "specs", "transports")
MADE = {actors.Trust, actors.CatalogueStore, actors.PolicySet}
"""Made by functions, and not of their parts: those are no names of `actors`."""

INNER = {NodePolicy, Engine}
"""A node's decisions are files of policies; `actors.Policy` is that of a runtime. Who writes an
engine finds its contract in `transports.engine.contract`."""


def hints(cls):
    """The annotations of a class, with names that only type checkers import."""
    late = {**vars(importlib.import_module("actors.catalogue.client")), "Engine": Engine}
    return typing.get_type_hints(cls, {**late, **vars(sys.modules[cls.__module__])})


def parts(hint):
    """The classes of this project in an annotation."""
    inner = hint if isinstance(hint, list) else typing.get_args(hint)
    for one in inner:
        yield from parts(one)
    if isinstance(hint, type) and hint.__module__.partition(".")[0] in OWN:
        yield hint


def reached(root):
    found, waiting = set(), [root]
    while waiting:
        cls = waiting.pop()
        if cls in found:
            continue
        found.add(cls)
        if attrs.has(cls) and cls not in MADE:
            waiting += [part for hint in hints(cls).values() for part in parts(hint)]
    return found


def test_all_parts_of_the_configuration_of_a_node_are_names_of_actors():
    found = reached(actors.NodeConfig)
    exported = {id(getattr(actors, name)) for name in actors.__all__}
    assert {cls for cls in found if id(cls) not in exported} == INNER
    assert found > MADE


@pytest.mark.parametrize("name", ["Spawn", "TokenSource", "ProviderMaker"])
def test_functions_in_it_have_names_for_their_types(name):
    assert typing.get_args(getattr(actors, name))
