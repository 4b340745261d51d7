"""How deep a change may reach into the value of a data object."""

from specs.errors import BadMessageError
from specs.limits.protocol import MAX_JSON_DEPTH

__all__ = ["check_path"]


def check_path(path: str | None) -> None:
    """Refuse a path that leads deeper than any value of a message is nested.

    Values are walked by functions that call themselves: whoever sends a path of thousands of
    segments would end who follows it.

    Raises:
        BadMessageError: It does.
    """
    if path is not None and path.count(".") >= MAX_JSON_DEPTH:
        raise BadMessageError(f"a path has more than {MAX_JSON_DEPTH} segments")
