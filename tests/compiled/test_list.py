"""What `setup.py` has mypyc compile has nothing that fails only once it is compiled."""

import ast

from tests.compiled.plugin import COMPILED
from tests.test_project import SOURCES


def derived(source: str) -> list[str]:
    """Classes of a module that derive from one of compiled modules."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [name for node in imports if node.module in COMPILED for name in node.names]
    theirs = {name.asname or name.name for name in names}
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [
        one.name
        for one in classes
        if theirs & {ast.unparse(base).partition("[")[0] for base in one.bases}
    ]


def test_no_source_derives_from_a_compiled_class():
    source = "from fsm.engine import Machine as M\nclass Own(M[int, str]): ...\nclass Other: ..."
    assert derived(source) == ["Own"]
    texts = {path: path.read_text() for path in SOURCES if path not in COMPILED.values()}
    found = {path: derived(text) for path, text in texts.items() if "class " in text}
    assert {path: names for path, names in found.items() if names} == {}


def test_no_compiled_class_has_fields_of_attrs():
    """mypyc refuses `attrs.field` for a value of the type that is declared."""
    assert [path for path in COMPILED.values() if "attrs.field(" in path.read_text()] == []
