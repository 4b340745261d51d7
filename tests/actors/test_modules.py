"""Modules that are imported when they are first needed."""

import gc
import sys

import pytest

from actors.modules import import_name


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module that knows whether garbage was collected while it was imported."""
    (tmp_path / "lazily.py").write_text("import gc\nIS_COLLECTING = gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "lazily"
    sys.modules.pop("lazily", None)


def test_garbage_is_not_collected_while_a_module_is_imported(module):
    assert import_name(module, "IS_COLLECTING") is False
    assert gc.isenabled()


def test_a_program_that_collects_no_garbage_stays_so(module):
    gc.disable()
    try:
        import_name(module, "IS_COLLECTING")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_garbage_is_collected_again_after_an_import_that_failed():
    with pytest.raises(ModuleNotFoundError):
        import_name("there_is_no_such_module", "anything")
    assert gc.isenabled()
