"""The configuration of the policies of a node."""

from datetime import UTC, tzinfo
from pathlib import Path
from typing import final

import attrs

from fsm.policy.terms import Algorithm, Result

__all__ = ["PolicyConfig"]


@final
@attrs.frozen(kw_only=True)
class PolicyConfig:
    """The policies by which a node judges messages.

    Attributes:
        files: Policy files, one set of policies each; a folder stands for the `*.toml` in it.
        combining: Algorithm that combines the results of several sets.
        default: Result for a message to which no policy applies (POL-15).
        zone: Time zone of conditions on the time of day.
    """

    files: tuple[Path, ...]
    combining: Algorithm = Algorithm.DENY_OVERRIDES
    default: Result = Result.PERMIT
    zone: tzinfo = UTC
