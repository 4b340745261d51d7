"""Limits of the command `dev`: life of its certificates, and interval of checks of files."""

from typing import Final

RELOAD_INTERVAL: Final = 0.25
"""Seconds between two checks whether files of hyperties have changed (ours)."""

AUTHORITY_DAYS: Final = 1825
"""Days for which the certificate of the local certificate authority is valid (ours)."""

CERTIFICATE_DAYS: Final = 90
"""Days for which the certificate of the local node is valid (ours)."""

RENEWAL_DAYS: Final = 7
"""Days before its expiry from which on a start replaces a local certificate (ours)."""
