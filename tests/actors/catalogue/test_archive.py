"""Packages are inspected before they are opened (S16, CAT-07): nothing but sources."""

import io
import stat
import sys
import zipfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.catalogue.archive import check_archive, pack
from actors.catalogue.errors import BadArchiveError
from specs.limits.foreign_code import PACKAGE_BYTES, PACKAGE_FILES, PACKAGE_UNPACKED_BYTES
from tests.support.catalogues import ENTRY_POINT, SOURCES, sources
from tests.support.chance import examples

CODE = "def activate(context): ..."


def zipped(*files, method=zipfile.ZIP_DEFLATED):
    """Pack names, or what zip knows of files, with contents."""
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", method) as archive:
        for name, content in (("stub.py", CODE), *files):
            archive.writestr(name, content)
    return into.getvalue()


def named(name, mode=stat.S_IFREG | 0o644):
    reported = zipfile.ZipInfo("x.py")
    reported.filename = name
    reported.external_attr = mode << 16
    return reported


def refusal(content, entry_point=ENTRY_POINT):
    with pytest.raises(BadArchiveError) as caught:
        check_archive(content, entry_point)
    return caught.value.reason


def test_a_package_is_packed_and_taken(tmp_path):
    content = pack(sources(tmp_path, {**SOURCES, "part/__init__.py": "", "data.json": "{}"}))
    check_archive(content, ENTRY_POINT)


def test_the_same_sources_are_the_same_bytes(tmp_path):
    one = pack(sources(tmp_path / "one"))
    (tmp_path / "two").mkdir()
    assert one == pack(sources(tmp_path / "two"))


def test_files_that_are_no_sources_are_left_out_of_a_package(tmp_path):
    content = pack(sources(tmp_path, {**SOURCES, "secret.pem": "x", ".git/config": "x"}))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["stub.py"]


def test_a_folder_without_sources_cannot_be_packed(tmp_path):
    with pytest.raises(BadArchiveError, match="would be empty"):
        pack(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "/etc/x.py", "../x.py", "a/../../x.py", "..", "a/..", "./x.py", "a//x.py", "~/x.py",
        "C:/x.py", "C:x.py", "\\\\host\\x.py", "a\\..\\x.py", "x.py/", "x\0.py", "x.py\0.json",
        " x.py", "x .py", "é.py", ".x.py", "a/.hidden/x.py", "", "con:.py", "x.py\n",
    ],
)  # fmt: skip
def test_zip_slip(name):
    assert "leads out of it" in refusal(zipped((named(name), "x")))


@pytest.mark.parametrize(
    "name", ["x.so", "x.pyc", "x.pth", "x.pyd", "Makefile", "x.PY", "x.py.exe"]
)
def test_a_file_that_is_no_source(name):
    assert "neither .py nor .json" in refusal(zipped((named(name), "x")))


@pytest.mark.parametrize(
    "mode", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK, stat.S_IFDIR]
)
def test_an_entry_that_is_no_plain_file(mode):
    assert "is no plain file" in refusal(zipped((named("x.py", mode | 0o777), "/etc/passwd")))


def test_a_name_that_comes_twice_even_if_only_some_systems_think_so():
    assert "twice" in refusal(zipped((named("STUB.py"), "x")))


def test_zip_bomb_one_file_packed_too_well():
    assert "too well" in refusal(zipped(("big.py", "#" * 2_000_000)))


def test_zip_bomb_many_files():
    files = [(f"f{number}.py", "x") for number in range(PACKAGE_FILES)]
    assert f"more than {PACKAGE_FILES} files" in refusal(zipped(*files))


def test_zip_bomb_much_altogether():
    line = "the_name_of_a_value_that_is_rather_long_{0} = {0}\n"
    source = "".join(line.format(number * number % 997) for number in range(35_000))
    content = zipped(*[(f"f{number}.py", source) for number in range(6)])
    assert len(content) < PACKAGE_BYTES
    assert f"more than {PACKAGE_UNPACKED_BYTES} bytes unpacked" in refusal(content)


def test_zip_bomb_that_lies_about_its_size():
    """What the directory says is not believed: everything is unpacked, into nothing."""
    content = bytearray(zipped(("big.json", "#" * 3000)))
    size = (3000).to_bytes(4, "little")
    content = content.replace(size, (30).to_bytes(4, "little"))
    assert refusal(bytes(content))


def test_an_archive_that_is_too_large():
    assert f"larger than {PACKAGE_BYTES}" in refusal(bytes(PACKAGE_BYTES + 1))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packing_that_is_not_taken(method):
    assert "packed by a method that is not accepted" in refusal(zipped(method=method))


def test_an_encrypted_file():
    content = bytearray(zipped())
    place = content.rindex(b"PK\1\2")
    content[place + 8] |= 1
    assert "packed by a method that is not accepted" in refusal(bytes(content))


@pytest.mark.parametrize(
    ("entry_point", "said"),
    [
        ("other:activate", "has no module 'other'"),
        ("stub", "is no module:function"),
        ("stub:", "is no module:function"),
        ("stub:a.b", "is no module:function"),
        ("../stub:activate", "is no module:function"),
        ("stub :activate", "is no module:function"),
        ("stub:activate\n", "is no module:function"),
    ],
)
def test_an_entry_point_that_is_not_there(entry_point, said):
    assert said in refusal(zipped(), entry_point)


def test_an_entry_point_may_be_a_package_or_in_one():
    check_archive(zipped(("part/__init__.py", ""), ("part/deep.py", "")), "part:activate")
    check_archive(zipped(("part/__init__.py", ""), ("part/deep.py", "")), "part.deep:activate")


def test_nothing_is_imported_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = set(sys.modules)
    check_archive(zipped(("evil.py", "raise SystemExit")), "evil:activate")
    assert set(sys.modules) == known
    assert list(tmp_path.iterdir()) == []


GOOD = zipped(("part/__init__.py", "x = 1\n" * 50), ("data.json", "{}"))


@st.composite
def mutated(draw):
    """Change, cut, repeat and insert bytes of a good archive."""
    content = bytearray(GOOD)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(content) - 1))
        match draw(st.sampled_from(["set", "cut", "insert", "tail"])):
            case "set":
                content[place] = draw(st.integers(0, 255))
            case "cut":
                del content[place : place + draw(st.integers(1, 30))]
            case "insert":
                content[place:place] = draw(st.binary(max_size=30))
            case "tail":
                content += content[place:]
        content = content or bytearray(b"x")
    return bytes(content)


def safe(content):
    """Say whether an archive is taken; what is taken holds sources below it and nothing else."""
    try:
        check_archive(content, ENTRY_POINT)
    except BadArchiveError:
        return False
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            assert not member.filename.startswith("/")
            assert ".." not in member.filename.split("/")
            assert member.filename.endswith((".py", ".json"))
        assert sum(len(archive.read(one)) for one in archive.infolist()) <= PACKAGE_UNPACKED_BYTES
    return True


@settings(max_examples=examples(80))
@given(mutated())
def test_a_mutated_archive_is_refused_or_harmless(content):
    """F2: only the declared error gets out."""
    safe(content)


@settings(max_examples=examples(80))
@example(b"")
@example(b"PK\5\6" + bytes(18))
@given(st.binary(max_size=200))
def test_garbage_is_no_archive(content):
    assert not safe(content)


def test_the_archive_that_is_mutated_is_good():
    assert safe(GOOD)
