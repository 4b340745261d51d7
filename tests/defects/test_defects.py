"""Each defect still fits the code, and the program distinguishes a found one from a survivor."""

from collections import Counter

from click.testing import CliRunner

from tests.defects import planting
from tests.defects.__main__ import main

CONCERNS = planting.read_concerns()


def test_each_defect_changes_code_that_is_there_and_names_a_test_that_is_there():
    for concern in CONCERNS.values():
        assert max(Counter(one.name for one in concern.defects).values()) == 1
        for one in concern.defects:
            assert one.planted()
            if one.file.endswith(".py"):
                compile(one.planted(), one.file, "exec")
            assert one.found_by, one.name
            for test in one.found_by:
                file, _, name = test.partition("::")
                assert f" {name}(" in (planting.ROOT / file).read_text(), test


def test_a_planted_defect_is_found_and_sound_code_survives():
    """OBS-05."""
    one = CONCERNS["bus"].defects[0]
    with planting.source_copy() as copy:
        assert planting.run_tests(copy, *one.found_by).verdict == "SURVIVED"
    shown = CliRunner().invoke(main, ["bus", "--name", one.name])
    assert (shown.exit_code, shown.output.count("::")) == (0, 1)
    assert f"{one.name}  " in shown.output
    assert " found " in shown.output


def test_a_write_in_the_copy_does_not_reach_the_tree(tmp_path, monkeypatch):
    monkeypatch.setattr(planting, "ROOT", tmp_path)
    (tmp_path / "code.py").write_text("as it was")
    with planting.source_copy() as copy, (copy / "code.py").open("r+") as file:
        file.write("changed")
    assert (tmp_path / "code.py").read_text() == "as it was"
