"""Options of policies, of a node or a runtime."""

from datetime import UTC, tzinfo
from functools import wraps
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import click

from actors.cli.options import Handler, Option
from actors.policy.config import PolicyConfig
from fsm.policy.terms import Algorithm, Result

DEFAULTS: Final = (str(Result.PERMIT), str(Result.DENY))


def check_zone(_: click.Context, __: click.Parameter, value: str) -> tzinfo:
    """Return a time zone; refuse what is none.

    Raises:
        BadParameter: It is none.
    """
    if value == "UTC":
        return UTC
    try:
        return ZoneInfo(value)
    except (KeyError, ValueError, OSError) as exc:
        raise click.BadParameter(f"{value!r} is no time zone such as Europe/Berlin") from exc


POLICY_OPTIONS: Final[tuple[Option, ...]] = (
    click.option(
        "--policy",
        metavar="FILE",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Judge messages by this policy file, or by all *.toml and *.json of a folder; "
        "repeatable.",
    ),
    click.option(
        "--policy-default",
        type=click.Choice(DEFAULTS),
        default=DEFAULTS[0],
        show_default=True,
        help="Decision about messages to which no policy applies.",
    ),
    click.option(
        "--policy-combining",
        type=click.Choice([str(one) for one in Algorithm]),
        default=str(Algorithm.DENY_OVERRIDES),
        show_default=True,
        help="How the results of several policy files combine.",
    ),
    click.option(
        "--policy-zone",
        metavar="ZONE",
        default="UTC",
        show_default=True,
        callback=check_zone,
        help="Time zone of the times in policies, such as Europe/Berlin.",
    ),
)
"""The options of policies."""


def policies_of(
    files: tuple[Path, ...], default: str, combining: str, zone: tzinfo
) -> PolicyConfig:
    """Return the policies that these options state; without a file, others may add policies.

    Args:
        files: Policy files and folders of them.
        default: Decision about messages to which no policy applies.
        combining: How the results of several files combine.
        zone: Time zone of the times in policies.
    """
    return PolicyConfig(
        files=files, combining=Algorithm(combining), default=Result(default), zone=zone
    )


def policy_options(command: Handler) -> Handler:
    """Add the options of policies; the command gets `policies`."""

    @wraps(command)
    def gathered(
        *,
        policy: tuple[Path, ...],
        policy_default: str,
        policy_combining: str,
        policy_zone: tzinfo,
        **values: object,
    ) -> int:
        policies = policies_of(policy, policy_default, policy_combining, policy_zone)
        return command(policies=policies, **values)

    made: Handler = gathered
    for option in reversed(POLICY_OPTIONS):
        made = option(made)
    return made
