"""Every number of policies, once, with unit and source."""

from typing import Final

MAX_POLICY_BYTES: Final = 262_144
"""Bytes in one policy file (ours, T7)."""

MAX_POLICY_SETS: Final = 64
"""Policy sets a node judges by (ours, T7)."""

MAX_POLICY_RULES: Final = 1000
"""Rules in one policy set, of all its policies together (ours, T7)."""

MAX_POLICY_DEPTH: Final = 8
"""Nesting of not, anyOf, allOf and lists in one condition (ours, T7)."""

MAX_POLICY_CONDITIONS: Final = 5000
"""Comparisons in one policy set (ours, T7)."""

MAX_POLICY_TASKS: Final = 16
"""Obligations, or advice, of one rule, policy or set (ours, POL-13)."""

MAX_POLICY_TEXT: Final = 2048
"""Characters in one text of a policy: no address is longer (ours, T7)."""

MAX_POLICY_COUNTERS: Final = 256
"""Counters that obligations of one node may begin; more fail (as many as MAX_JSON_KEYS, T7)."""
