"""What a node is told about its policies."""

from datetime import UTC, tzinfo
from pathlib import Path
from typing import final

import attrs

from fsm.policy.terms import Algorithm, Result

__all__ = ["PolicyConfig"]


@final
@attrs.frozen(kw_only=True)
class PolicyConfig:
    """By what a node judges messages.

    Attributes:
        files: Policy files, one set each; a folder stands for the `*.toml` in it.
        combining: How the results of several sets become one.
        default: What happens to a message that nothing applies to (POL-15).
        zone: Where its clock hangs, for rules about times.
    """

    files: tuple[Path, ...]
    combining: Algorithm = Algorithm.DENY_OVERRIDES
    default: Result = Result.PERMIT
    zone: tzinfo = UTC
