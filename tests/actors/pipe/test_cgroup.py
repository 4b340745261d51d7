"""Cgroups of sandboxes, in folders that look like the kernel's (T16).

`tests/system/isolation/test_totals.py` has the kernel's own, where a test can make one.
"""

import os
from pathlib import Path

import pytest

from actors.pipe import process
from actors.pipe.process import home_cgroup, open_cgroup
from fsm.limits.shares import SandboxTotals

OWN = str(os.getpid())
TOTALS = SandboxTotals(2**30, 0.5)
FILES = ("memory.max", "cpu.max", "cpu.weight", "memory.swap.max", "cgroup.procs", "cgroup.kill")


class Hierarchy:
    """A cgroup of this process, in which folders get the files that the kernel would make."""

    def __init__(self, folder, monkeypatch):
        self.home = folder / "unit.service"
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
        for name in FILES:
            (folder / name).write_text("")

    def rmdir(self, folder):
        if (folder / "cgroup.kill").read_text() == "1":
            self.killed.append(folder.name)
        for name in FILES:
            (folder / name).unlink()
        os.rmdir(folder)  # noqa: PTH106

    @property
    def groups(self):
        return sorted(one.name for one in self.home.iterdir() if one.is_dir())


@pytest.fixture
def hierarchy(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        yield Hierarchy(tmp_path, patch)


def test_the_group_has_the_limits_and_takes_processes(hierarchy):
    hierarchy.give(passed="cpu memory pids")
    group = open_cgroup(TOTALS, hierarchy.home)
    assert group.folder.parent == hierarchy.home
    read = {name: (group.folder / name).read_text() for name in FILES[:4]}
    assert read == {
        "memory.max": "1073741824", "cpu.max": "50000 100000", "cpu.weight": "10",
        "memory.swap.max": "0",
    }  # fmt: skip
    group.add(77)
    assert (group.folder / "cgroup.procs").read_text() == "77"
    group.remove()
    assert (hierarchy.groups, hierarchy.killed) == ([], [group.folder.name])


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


def test_without_the_controllers_there_is_none_and_nobody_is_moved(hierarchy):
    hierarchy.give(controllers="cpu pids")
    assert open_cgroup(TOTALS, hierarchy.home) is None
    assert hierarchy.groups == []


def test_a_limit_that_the_kernel_refuses_leaves_no_group(hierarchy, monkeypatch):
    hierarchy.give(passed="cpu memory")
    monkeypatch.setattr(process, "_write", refusing("cpu.weight", process._write))
    assert open_cgroup(TOTALS, hierarchy.home) is None
    assert hierarchy.groups == []


def refusing(name, write):
    def or_not(file, text):
        if file.name == name:
            raise PermissionError
        write(file, text)

    return or_not


def test_without_a_cgroup_of_its_own_there_is_none():
    assert open_cgroup(TOTALS, None) is None


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


MOUNT = "24 1 0:22 / /proc rw - proc proc rw\n30 23 0:26 {} {} rw,nosuid shared:9 - cgroup2 x rw\n"


@pytest.mark.parametrize(
    ("own", "root", "at", "home"),
    [
        ("0::/a/unit.service", "/", "/sys/fs/cgroup", "/sys/fs/cgroup/a/unit.service"),
        ("4:memory:/x\n0::/", "/", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified"),
        ("0::/box/1/a", "/box/1", "/sys/fs/cgroup", "/sys/fs/cgroup/a"),
    ],
    ids=["unit", "beside version 1", "container"],
)
def test_the_cgroup_of_a_process_is_found(own, root, at, home, tmp_path):
    (tmp_path / "cgroup").write_text(own + "\n")
    (tmp_path / "mountinfo").write_text(MOUNT.format(root, at))
    assert home_cgroup(tmp_path) == Path(home)


def test_a_process_in_no_cgroup_of_version_2_has_none(tmp_path):
    assert home_cgroup(tmp_path) is None
    (tmp_path / "cgroup").write_text("4:memory:/x\n")
    (tmp_path / "mountinfo").write_text(MOUNT.format("/", "/sys/fs/cgroup"))
    assert home_cgroup(tmp_path) is None
