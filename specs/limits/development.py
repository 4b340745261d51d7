"""Limits of the command `dev`: life of its certificates, and interval of checks of files."""

from typing import Final

RELOAD_INTERVAL: Final = 0.25
"""Seconds from one look at the files of hyperties to the next (ours)."""

AUTHORITY_DAYS: Final = 1825
"""Days for which the local certificate authority is good (ours)."""

CERTIFICATE_DAYS: Final = 90
"""Days for which the certificate of the local node is good (ours)."""

RENEWAL_DAYS: Final = 7
"""Days before its end at which a start replaces a local certificate (ours)."""
