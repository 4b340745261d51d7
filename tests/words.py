"""Words that a stranger stumbles over, counted in the code of the product.

A function is named for what it does or returns, so a bare participle (`asked`, `_taken`) says too
little; a property is a state and may have one. A variable is named for what it holds.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

_IRREGULAR: Final = re.compile(
    "begun|bound|broken|brought|built|caught|chosen|done|drawn|driven|forgotten|found|frozen"
    "|given|gone|got|heard|held|hidden|kept|known|laid|led|left|lost|made|meant|met|paid|said"
    "|seen|sent|shed|shown|spent|spoken|spun|stood|struck|stuck|sworn|taken|taught|thawed"
    "|thought|told|torn|understood|withdrawn|won|wound|woven|written"
)
_NO_PARTICIPLES: Final = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "speed"})
_VAGUE: Final = frozenset({"one", "there", "said", "found", "shown"})
_NO_VERB: Final = frozenset({"A", "All", "An", "How", "The", "True", "What", "Where", "Whether"})
_IT: Final = re.compile(r"\bit\b", re.IGNORECASE)

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def count_words(tree: ast.AST) -> Counter[str]:
    """Return how often each habit occurs in a module."""
    return Counter(habit for node in ast.walk(tree) for habit in _habits(node))


def _habits(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in _VAGUE:
            yield "vague variables"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            is_property = any("property" in ast.unparse(each) for each in node.decorator_list)
            if not is_property and _is_participle(node.name.strip("_")):
                yield "bare participles"
            text = ast.get_docstring(node) or ""
            if not is_property and text.partition(" ")[0] in _NO_VERB:
                yield "docstrings without a verb"
    if isinstance(node, ast.Module | ast.ClassDef | _Function):
        summary = (ast.get_docstring(node) or "").partition("\n\n")[0]
        if len(_IT.findall(summary)) > 1:
            yield "docstrings with more than one it"


def _is_participle(name: str) -> bool:
    is_regular = name.endswith("ed") and name not in _NO_PARTICIPLES
    return "_" not in name and (is_regular or bool(_IRREGULAR.fullmatch(name)))
