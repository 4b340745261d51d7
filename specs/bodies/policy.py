"""Bodies of requests that manage policies (POL-05), and of the answers to them.

These messages are an addition of this project to the protocol. An administrator sends them to
`MN(d)/policy`, the user of a runtime to `R/pep`: `read` lists the policy sets or returns one set,
`create` adds a set, `update` replaces a set, `delete` removes a set, and `execute` reads the policy
files again.
"""

from typing import Annotated, Final

import attrs

from specs.bodies.answer import Success
from specs.bodies.word import PolicyMethod
from specs.jsonvalue import JsonObject
from specs.limits.protocol import MAX_ID
from specs.schema.field import Filled, add_checks
from specs.schema.shape import Whole

UNTIL_STOP: Final = "until the process stops or reads its policy files again"
"""Text for people: how long a change of the policies by a message lasts."""

UNTIL_RELOAD: Final = "until the policy files are read again or other policies are set"
"""Text for people: how long policies that were read from files stay in effect."""

UNTIL_CHANGED: Final = "until another change, or until a node of the domain reads its policy files"
"""Text for people: how long policies of a domain that several nodes serve stay in effect."""


@attrs.frozen(slots=True, field_transformer=add_checks)
class ReadPolicies:
    """Read policies.

    Attributes:
        resource: Id of the set to read; None: list all.
    """

    resource: Filled | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class AddPolicies:
    """Add a policy set; the value is the content of a policy file."""

    value: JsonObject


@attrs.frozen(slots=True, field_transformer=add_checks)
class ReplacePolicies:
    """Replace the policy set with the same id."""

    resource: Filled
    value: JsonObject


@attrs.frozen(slots=True, field_transformer=add_checks)
class RemovePolicies:
    """Remove a policy set."""

    resource: Filled


@attrs.frozen(slots=True, field_transformer=add_checks)
class PolicyCommand:
    """Read the policy files again."""

    method: Annotated[str, PolicyMethod]


@attrs.frozen(slots=True, field_transformer=add_checks)
class PolicyEntry:
    """One policy set in the list of all.

    Attributes:
        version: Its author's name for this version; may be empty.
        rules: Number of its rules.
        source: The file, or the sender of the message, that it came from.
    """

    id: Filled
    version: str
    rules: Annotated[int, Whole(0, MAX_ID)]
    source: str


@attrs.frozen(slots=True, field_transformer=add_checks)
class PolicyBook:
    """All policies of a node or a runtime.

    Attributes:
        version: Number that rises with each change.
        combining: The algorithm that combines the results of the sets.
        default: The result for a message to which no policy applies.
        counts: Counts by obligations since the process started, by name.
    """

    version: Annotated[int, Whole(1, MAX_ID)]
    combining: Filled
    default: Filled
    sets: tuple[PolicyEntry, ...]
    counts: JsonObject = attrs.field(factory=dict)


@attrs.frozen(slots=True, field_transformer=add_checks)
class PolicyChange:
    """The result of a change.

    Attributes:
        version: Version of the policies in effect from now on.
        lasts: How long the change lasts, in words.
    """

    version: Annotated[int, Whole(1, MAX_ID)]
    lasts: Filled


@attrs.frozen(slots=True, field_transformer=add_checks)
class PoliciesListed(Success):
    """The list of all policy sets."""

    value: PolicyBook


@attrs.frozen(slots=True, field_transformer=add_checks)
class PoliciesShown(Success):
    """One policy set, as its author wrote it."""

    value: JsonObject


@attrs.frozen(slots=True, field_transformer=add_checks)
class PoliciesChanged(Success):
    """The result of a change."""

    value: PolicyChange
