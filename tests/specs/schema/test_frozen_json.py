"""Values of data objects that nobody changes in place (SYN-12, I-D4)."""

from specs.jsonvalue import FrozenArray, FrozenObject


def test_every_method_that_changes_is_refused():
    """What a later Python adds shows here."""
    written = {*dir(dict), *dir(list)} - {"__init__", "__setattr__", "__delattr__"}
    may_change = {name for name in written if name.strip("_") in CHANGING}
    for name in may_change & set(dir(dict)):
        assert getattr(FrozenObject, name) is not getattr(dict, name)
    for name in may_change & set(dir(list)):
        assert getattr(FrozenArray, name) is not getattr(list, name)


CHANGING = {
    *("setitem", "delitem", "ior", "iadd", "imul", "append", "clear", "extend", "insert", "pop"),
    *("popitem", "remove", "reverse", "setdefault", "sort", "update"),
}
