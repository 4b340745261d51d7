"""Bodies of policy management (POL-05); ours, beside the catalogue's messages.

An administrator sends them to `MN(d)/policy`, the user of a runtime to `R/pep`: `read` lists the
sets or shows one, `create` adds one, `update` replaces one, `delete` removes one, and `execute`
has the files read again.
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
"""Duration of a change by message."""

UNTIL_RELOAD: Final = "until the policy files are read again or other policies are set"
"""Duration of policies that were read from files."""

UNTIL_CHANGED: Final = "until another change, or until a node of the domain reads its policy files"
"""Duration of policies of a domain that several nodes serve."""


@attrs.frozen(slots=True, field_transformer=add_checks)
class ReadPolicies:
    """Show policies.

    Attributes:
        resource: Id of the set to show; None lists all.
    """

    resource: Filled | None = None


@attrs.frozen(slots=True, field_transformer=add_checks)
class AddPolicies:
    """Judge by one more set; the value is what a policy file holds."""

    value: JsonObject


@attrs.frozen(slots=True, field_transformer=add_checks)
class ReplacePolicies:
    """Judge by another set of the same id."""

    resource: Filled
    value: JsonObject


@attrs.frozen(slots=True, field_transformer=add_checks)
class RemovePolicies:
    """Judge without a set."""

    resource: Filled


@attrs.frozen(slots=True, field_transformer=add_checks)
class PolicyCommand:
    """Have the policy files read again."""

    method: Annotated[str, PolicyMethod]


@attrs.frozen(slots=True, field_transformer=add_checks)
class PolicyEntry:
    """One set in the list of all.

    Attributes:
        version: Its author's name for this version of it; may be empty.
        rules: How many it has.
        source: The file it came from, or whose message.
    """

    id: Filled
    version: str
    rules: Annotated[int, Whole(0, MAX_ID)]
    source: str


@attrs.frozen(slots=True, field_transformer=add_checks)
class PolicyBook:
    """All that a node or a runtime judges by.

    Attributes:
        version: Counts up with each change.
        combining: How the results of the sets become one.
        default: What happens to a message that nothing applies to.
        counts: What obligations have counted since the process started, by name.
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
        version: Of all that is judged by from now on.
        lasts: How long it will be so, in words.
    """

    version: Annotated[int, Whole(1, MAX_ID)]
    lasts: Filled


@attrs.frozen(slots=True, field_transformer=add_checks)
class PoliciesListed(Success):
    """All sets, as an answer."""

    value: PolicyBook


@attrs.frozen(slots=True, field_transformer=add_checks)
class PoliciesShown(Success):
    """One set, as its author wrote it."""

    value: JsonObject


@attrs.frozen(slots=True, field_transformer=add_checks)
class PoliciesChanged(Success):
    """A change is made."""

    value: PolicyChange
