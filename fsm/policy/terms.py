"""Vocabulary of the policy language, with alternative spellings (POL-02, POL-12, C-61)."""

from enum import StrEnum
from typing import Final


class Result(StrEnum):
    """Result of a rule, a policy, a set or all of them for a message (POL-02)."""

    PERMIT = "permit"
    DENY = "deny"
    NOT_APPLICABLE = "notApplicable"
    INDETERMINATE = "indeterminate"


class Algorithm(StrEnum):
    """Algorithm that combines several results into one (POL-12)."""

    DENY_OVERRIDES = "denyOverrides"
    PERMIT_OVERRIDES = "permitOverrides"
    FIRST_APPLICABLE = "firstApplicable"


class Direction(StrEnum):
    """Direction of messages to which a rule applies (POL-17).

    At a node, a message to an address of another domain is outgoing. In a runtime, each message
    that one of its components sends is outgoing. All others are incoming.
    """

    IN = "in"
    OUT = "out"
    BOTH = "both"


class Moment(StrEnum):
    """Time of an obligation: before or after the message is forwarded (POL-13)."""

    BEFORE = "before"
    AFTER = "after"


class Operator(StrEnum):
    """Operator that compares an attribute with parameters (POL-10)."""

    EQUALS = "equals"
    IN = "in"
    MORE_THAN = "moreThan"
    LESS_THAN = "lessThan"
    BETWEEN = "between"
    CONTAINS = "contains"
    LIKE = "like"


EFFECTS: Final = {
    "permit": Result.PERMIT,
    "allow": Result.PERMIT,
    "deny": Result.DENY,
    "block": Result.DENY,
}
"""Effects by their permitted spellings (C-61)."""

ALGORITHMS: Final = {
    **{str(each): each for each in Algorithm},
    "allowOverrides": Algorithm.PERMIT_OVERRIDES,
    "blockOverrides": Algorithm.DENY_OVERRIDES,
}
"""Combining algorithms by their permitted spellings (C-61)."""
