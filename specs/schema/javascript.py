"""Generator of an ES module with the limits and closed vocabularies, for the browser runtime.

Each constant is an export of its own, so that a bundle contains only the ones it uses.
"""

import json
from collections.abc import Iterator
from types import ModuleType
from typing import Final

from specs.addresses.address import MAX_ADDRESS
from specs.limits import bus, group, node, p2p, protocol, sync, transfer, webrtc
from specs.message import EVENT_PARTS, MessageType
from specs.reply_code import Code, DropReason

_HEAD: Final = "// Written by `python -m specs constants`; not to be edited.\n\n"

_MODULES: Final = (protocol, bus, p2p, sync, transfer, webrtc, node, group)


def constants() -> str:
    """Return the text of the ES module `constants.js`."""
    lines = [f"export const MAX_ADDRESS = {MAX_ADDRESS};"]
    lines += [line for module in _MODULES for line in _numbers(module)]
    words = {
        "CODES": {code.name: int(code) for code in Code},
        "DROPS": {reason.name: reason.value for reason in DropReason},
        "TYPES": [each.value for each in MessageType],
        "EVENT_PARTS": sorted(EVENT_PARTS),
    }
    lines += [
        f"export const {name} = /** @type {{const}} */ ({json.dumps(value)});"
        for name, value in words.items()
    ]
    return _HEAD + "\n".join(dict.fromkeys(lines)) + "\n"


def _numbers(module: ModuleType) -> Iterator[str]:
    for name, value in vars(module).items():
        if name.isupper() and not name.startswith("_") and isinstance(value, int | float):
            yield f"export const {name} = {json.dumps(value)};"
