"""Cgroups of sandboxes, in folders that look like the kernel's (T16).

`tests/system/isolation/test_totals.py` has the kernel's own, where a test can make one.
"""

import os
from pathlib import Path

import pytest

from actors.pipe import process
from actors.pipe.process import open_cgroup
from fsm.limits.shares import SandboxTotals

OWN = str(os.getpid())
TOTALS = SandboxTotals(2**30, 0.5)
FILES = ("memory.max", "cpu.max", "cpu.weight", "memory.swap.max", "cgroup.procs", "cgroup.kill")


class Hierarchy:
    """A cgroup of this process, in which folders get the files that the kernel would make."""

    def __init__(self, folder, monkeypatch):
        self.home, self.files = folder / "unit.service", FILES
        self.killed = []
        # A bound method would not get the folder.
        monkeypatch.setattr(Path, "mkdir", lambda at, **how: self.mkdir(at, **how))  # noqa: PLW0108
        monkeypatch.setattr(Path, "rmdir", lambda at: self.rmdir(at))  # noqa: PLW0108
        self.mkdir(self.home)
        self.give(controllers="cpu io memory")

    def give(self, procs=OWN, controllers="cpu io memory", passed=""):
        (self.home / "cgroup.procs").write_text(procs.replace(" ", "\n"))
        (self.home / "cgroup.controllers").write_text(controllers)
        (self.home / "cgroup.subtree_control").write_text(passed)

    def mkdir(self, folder, mode=0o700, exist_ok=False):  # noqa: FBT002
        os.makedirs(folder, mode, exist_ok=exist_ok)  # noqa: PTH103
        for name in self.files:
            (folder / name).write_text("")

    def rmdir(self, folder):
        if (folder / "cgroup.kill").read_text() == "1":
            self.killed.append(folder.name)
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
        os.rmdir(folder)  # noqa: PTH106

    @property
    def groups(self):
        return sorted(one.name for one in self.home.iterdir() if one.is_dir())


@pytest.fixture
def hierarchy(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        yield Hierarchy(tmp_path, patch)


def test_a_process_alone_in_a_delegated_cgroup_moves_into_a_leaf(hierarchy):
    group = open_cgroup(TOTALS, hierarchy.home)
    leaf = hierarchy.home / "protofly-host"
    assert (leaf / "cgroup.procs").read_text() == OWN
    assert (hierarchy.home / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert group.folder.parent == hierarchy.home
    # The next runtime of this process finds it there.
    hierarchy.give(procs="", passed="cpu memory")
    (leaf / "cgroup.subtree_control").write_text("")
    assert open_cgroup(TOTALS, leaf).folder.parent == hierarchy.home


def test_a_limit_that_the_kernel_refuses_leaves_no_group(hierarchy):
    hierarchy.give(passed="cpu memory")
    hierarchy.files = [name for name in FILES if name != "cpu.weight"]
    assert open_cgroup(TOTALS, hierarchy.home) is None
    assert hierarchy.groups == []


def test_groups_of_dead_hosts_are_removed_and_no_others(hierarchy):
    hierarchy.give(passed="cpu memory")
    born = process._start_time(os.getpid())
    dead = [f"protofly-sandboxes-{OWN}-{born - 1}-1", "protofly-sandboxes-4194999-1-1"]
    living = [f"protofly-sandboxes-{OWN}-{born}-999", "protofly-sandboxes-x-1-1", "others"]
    for name in dead + living:
        hierarchy.mkdir(hierarchy.home / name)
    group = open_cgroup(TOTALS, hierarchy.home)
    assert hierarchy.groups == sorted([*living, group.folder.name])
    assert sorted(hierarchy.killed) == sorted(dead)
