"""Packages are inspected before they are opened (S16, CAT-07): nothing but sources."""

import io
import stat
import zipfile

import pytest

from actors.catalogue.archive import check_archive
from actors.catalogue.errors import BadArchiveError
from tests.support.catalogues import ENTRY_POINT

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


@pytest.mark.parametrize(
    "name", ["x.so", "x.pyc", "x.pth", "x.pyd", "Makefile", "x.PY", "x.py.exe"]
)
def test_a_file_that_is_no_source(name):
    assert "neither .py nor .json" in refusal(zipped((named(name), "x")))
