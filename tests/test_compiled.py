"""Modules of tests that a worker compiles for the others."""

import os

import pytest

from tests.support.compiled import compile_tests, compiled


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    path = tmp_path / "test_sums.py"
    path.write_text("assert 1 + 1 == 3")
    return path


def test_pytest_reads_what_was_compiled_and_its_asserts_are_rewritten(module, pytestconfig):
    compile_tests(pytestconfig, [module])

    with pytest.raises(AssertionError, match=r"assert \(1 \+ 1\) == 3"):
        exec(compiled(module), {})  # noqa: S102 - as an import does


def test_a_module_that_was_changed_is_compiled_again(module, pytestconfig):
    compile_tests(pytestconfig, [module])
    first = compiled(module)
    module.write_text("assert 2 + 2 == 5")
    os.utime(module, (0, 0))
    assert compiled(module) is None

    compile_tests(pytestconfig, [module])

    assert compiled(module) != first


@pytest.mark.parametrize("text", [b"def", b"\0", b"# coding: nothing\n", b"\xff"])
def test_a_module_that_cannot_be_compiled_is_left_out(module, pytestconfig, text):
    module.write_bytes(text)

    compile_tests(pytestconfig, [module, module.with_name("test_gone.py")])

    assert [*module.parent.iterdir()] == [module]


def test_nothing_is_written_where_python_is_to_write_nothing(module, pytestconfig, monkeypatch):
    monkeypatch.setattr("sys.dont_write_bytecode", True)

    compile_tests(pytestconfig, [module])

    assert [*module.parent.iterdir()] == [module]
