"""Errors that programs can meet are names of `actors`, and say so."""

import builtins
import copy
import inspect
import pickle
import re

import pytest

import actors
from tests.support.report_world import Open, world

SECTION = re.compile(r"^Raises:\n((?:[ \t]+.*\n?|\n)+)", re.MULTILINE)


def documented():
    """Return the names in the sections `Raises` of all that is public, by where they stand."""
    for name in actors.__all__:
        exported = getattr(actors, name)
        members = dict(inspect.getmembers(exported)) if inspect.isclass(exported) else {}
        public = {f"{name}.{key}": each for key, each in members.items() if key[0] != "_"}
        for where, each in {name: exported, **public}.items():
            if callable(each) or isinstance(each, property):
                found = SECTION.search(inspect.getdoc(each) or "")
                for error in re.findall(r"^    (\w+):", found[1] if found else "", re.MULTILINE):
                    yield where, error


def test_each_error_that_a_docstring_names_can_be_caught_by_its_public_name():
    named = list(documented())
    assert len(named) > len(actors.__all__)
    lacking = [
        (where, error)
        for where, error in named
        if not hasattr(builtins, error) and error not in actors.__all__
    ]
    assert lacking == []


def test_an_error_shows_the_module_from_which_programs_take_it():
    errors = [getattr(actors, name) for name in actors.__all__]
    errors = [each for each in errors if isinstance(each, type) and issubclass(each, Exception)]
    assert len(errors) > 40
    assert {each.__module__ for each in errors} == {"actors"}
    assert [pickle.loads(pickle.dumps(each)) for each in errors] == errors  # noqa: S301


# ---- hyperties that would never be called


def made(name, function):
    return type("Made", (actors.Hyperty,), {name: function})


@pytest.mark.parametrize("name", ["on_request", "on_event", "on_invited", "started"])
def test_a_hook_that_is_not_async_is_refused_when_the_class_is_defined(name):
    with pytest.raises(TypeError, match=f"Made.{name} has to be an async function"):
        made(name, lambda *_: None)


async def work(*_):
    """Do nothing."""


@pytest.mark.parametrize(
    ("name", "hook"),
    [
        ("on_requests", "on_request"),
        ("onrequest", "on_request"),
        ("on_Request", "on_request"),
        ("on_events", "on_event"),
        ("on_invite", "on_invited"),
        ("on_start", "started"),
    ],
)
def test_a_method_that_is_named_nearly_like_a_hook_is_refused(name, hook):
    with pytest.raises(TypeError, match=f"Made.{name} is never called; did you mean {hook}?"):
        made(name, work)


def test_other_methods_may_have_any_name():
    for name in ("on_air", "once", "started_at", "online", "requests", "on_timer"):
        made(name, work)


# ---- values


async def test_the_value_of_a_reported_object_can_be_copied(autojump_clock):
    async with world() as w:
        hyperty = await w.here.deploy(Open)
        async with hyperty.report("comm", {"deep": {"list": [1]}}) as thing:
            copied = copy.deepcopy(thing.value)
            copied["deep"]["list"].append(2)
            await thing.set("deep.more", 2)
            assert thing.value == {"deep": {"list": [1], "more": 2}}
            assert copy.deepcopy(thing.value) == thing.value
