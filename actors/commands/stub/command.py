"""`python -m actors stub`: descriptors by which other domains reach this one."""

from types import MappingProxyType
from typing import Final

from actors.cli.group import subgroup

_SUMMARIES: Final = MappingProxyType(
    {
        "sign": "Sign a descriptor, with a package of code or without.",
        "publish": "Put a signed descriptor into the directory of a catalogue.",
        "list": "Show what a catalogue offers.",
        "verify": "Show a descriptor, and why a runtime would refuse it.",
        "revoke": "Revoke descriptors or packages, or renew the list of those.",
    }
)

command = subgroup(
    "stub",
    _SUMMARIES,
    """Publish how other domains reach this one, and look at what others publish.

    Keys are made with `token keys`.
    """,
)
