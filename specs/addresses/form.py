"""Forms of addresses, as the message catalogue writes them: `R/registry`, `PX/status`.

The part before the first slash names a form, the rest is meant literally, `<n>`
is any one segment. Forms that differ only by a number or a small letter behind
(`R`, `R2`, `H`, `Hx`) are the same form of, usually, another address.
"""

import re
from functools import lru_cache
from typing import Final

from specs.errors import SpecError

_PART: Final = "[^/]+"
_RUNTIME: Final = f"hyperty-runtime://{_PART}/{_PART}"
_NO_OBJECTS: Final = "hyperty(?:-[^:]*)?|domain(?:-[^:]*)?|user(?:-[^:]*)?|global"

# fmt: off
FORMS: Final = {
    "x":    ".+://.+",
    "R":    _RUNTIME,
    "PQ":   f"{_RUNTIME}/p2prequester/{_PART}",
    "PH":   f"{_RUNTIME}/p2phandler/{_PART}",
    "PC":   f"{_RUNTIME}/p2phandler/{_PART}/conn/{_PART}",
    "PX":   f"{_RUNTIME}/(?:p2prequester|p2phandler)/{_PART}(?:/conn/{_PART})?",
    "S":    f"{_RUNTIME}/(?:protostub|p2prequester|p2phandler)/{_PART}",
    "H":    f"(?:hyperty://{_PART}/.+|{_RUNTIME}/(?:p2prequester|p2phandler)/{_PART})",
    "O":    f"(?!(?:{_NO_OBJECTS})://)[a-z][^/:]*://{_PART}/{_PART}",
    "MN":   f"domain://msg-node[.]{_PART}",
    "DR":   f"domain://registry[.]{_PART}",
    "GR":   "global://registry",
    "IDM":  f"(?:domain://idm[.]|domain-idp://){_PART}",
    "QOS":  f"domain://qos[.]{_PART}",
    "USER": f"(?:/{_PART}/user/.+|user://.+)",
    "GUID": f"(?:/{_PART}/guid/.+|user-guid://.+)",
    "IDP":  f"/{_PART}/idp-identifier/.+",
    "URL":  "(?!user)[a-z][^/:]*://.+",
}
# fmt: on
"""What each form looks like, as a regular expression for canonical addresses.

`x` any; `R` a runtime; `PQ` and `PH` its P2P stubs, `PC` a handler's end of one
link, `PX` any end; `S` any stub; `H` a hyperty, or a stub that acts like one; `O` a
data object; `MN`, `DR`, `IDM`, `QOS` the services of a domain; `GR` the global
registry; the rest is what a registry can be asked for.
"""


@lru_cache(maxsize=256)
def _compiled(form: str) -> re.Pattern[str]:
    head, slash, rest = form.partition("/")
    looks = FORMS.get(head) or FORMS.get(head.rstrip("12xy"))
    if looks is None:
        raise SpecError(f"{form!r} begins with no known form of an address")
    tail = re.escape(slash + rest).replace("<n>", _PART)
    return re.compile(f"({looks}){tail}")


def bound(form: str, address: str) -> str | None:
    """Return which address the form's first part stands for; None if the form does not fit.

    Raises:
        SpecError: There is no such form.
    """
    found = _compiled(form).fullmatch(address)
    return None if found is None else found[1]
