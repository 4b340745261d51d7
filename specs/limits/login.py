"""Every number of logins: tokens, keys, and how long what they open lasts, with unit and source."""

from typing import Final

SESSION_LIFE: Final = 43_200.0
"""Seconds a login is good for, unless its operator says otherwise (ours, MN-05: 12 hours)."""

LOGIN_TIMEOUT: Final = 2.0
"""Seconds an identity provider has to answer (ours; below OPEN_TIMEOUT, so that it is told)."""

KEYS_TIMEOUT: Final = 1.5
"""Seconds a server has to give out its signing keys (ours; below LOGIN_TIMEOUT)."""

LOGINS_PENDING: Final = 256
"""Logins of one node under way at once (ours)."""

TOKEN_LIFE: Final = 600.0
"""Seconds from when a login token is issued until it must be over (RELIABILITY T1)."""

CLOCK_SKEW: Final = 60.0
"""Seconds by which the clocks of an issuer and a node may differ (RELIABILITY R12)."""

TOKEN_CHARS: Final = 8192
"""Characters in one login token (ours; a token with 64 roles has 2000)."""

TOKEN_ROLES: Final = 64
"""Roles in one login token (ours)."""

SPENT_TOKENS: Final = 65_536
"""Login tokens remembered as used: a hundred logins a second, for TOKEN_LIFE (ours, S4)."""

JWKS_BYTES: Final = 65_536
"""Bytes in one set of signing keys (ours)."""

JWKS_KEYS: Final = 64
"""Keys in one set (ours)."""

KEYS_FRESH: Final = 300.0
"""Seconds for which the signing keys of a server are not asked for again (ours)."""

KEYS_PAUSE: Final = 5.0
"""Seconds between two attempts to get the keys of a server, whatever tokens say (ours)."""

KEYS_STALE: Final = 3600.0
"""Seconds for which keys are used whose source cannot be reached any more (ours)."""

KEY_FILE_FRESH: Final = 1.0
"""Seconds for which a file of signing keys is not looked at again (ours)."""

KEY_FILE_PAUSE: Final = 0.1
"""Seconds between two looks at a file of signing keys, whatever tokens say (ours)."""
