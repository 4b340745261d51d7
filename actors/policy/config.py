"""The configured policies of a node or a runtime, and the error of a file that holds none."""

from datetime import UTC, tzinfo
from pathlib import Path
from typing import final

import attrs

from actors.kit.arguments import as_paths, type_checked
from fsm.policy.model import PolicySet
from fsm.policy.terms import Algorithm, Result
from specs.errors import PlaceError


@final
class PolicyFileError(PlaceError, public=True):
    """A policy file cannot be used, so no file takes effect; the reason says what to do."""

    summary = "cannot use the policy file {}"


@final
@attrs.frozen(kw_only=True, field_transformer=type_checked)
class PolicyConfig:
    """The policies by which a node or a runtime judges messages.

    Attributes:
        files: Policy files, one set of policies each; a folder stands for the `*.toml` and
            `*.json` in it.
        sets: Sets that the program has read itself; they stand before those of the files.
        combining: Algorithm that combines the results of several sets.
        default: Result for a message to which no policy applies (POL-15).
        zone: Time zone of conditions on the time of day.

    Raises:
        TypeError: A value is of a wrong kind.
    """

    files: tuple[Path, ...] = attrs.field(default=(), converter=as_paths)
    sets: tuple[PolicySet, ...] = ()
    combining: Algorithm = Algorithm.DENY_OVERRIDES
    default: Result = Result.PERMIT
    zone: tzinfo = UTC
