"""Every number of catalogues: descriptors, packages, how long they last, with unit and source."""

from typing import Final

DESCRIPTOR_BYTES: Final = 65_536
"""Bytes in one signed descriptor (ours; one with a schema has 3000)."""

PACKAGE_BYTES: Final = 2_097_152
"""Bytes in one package of code (RELIABILITY S16)."""

PACKAGE_FILES: Final = 256
"""Files in one package of code (ours)."""

PACKAGE_UNPACKED_BYTES: Final = 8_388_608
"""Bytes in all files of a package once unpacked (ours; four times what may be packed)."""

PACKAGE_RATIO: Final = 100
"""How many times its packed size a file may have (ours; source code packs to a fifth)."""

DESCRIPTOR_LIFE: Final = 7_776_000
"""Seconds until which a descriptor may be good at most, from now (ours, T14: 90 days)."""

DESCRIPTOR_FRESH: Final = 60.0
"""Seconds for which a descriptor that was fetched is not asked for again (ours, CAT-11)."""

REVOCATIONS: Final = 256
"""Entries in one list of what is revoked (ours; as many as any list may have)."""

REVOCATIONS_BYTES: Final = 262_144
"""Bytes in one signed list of what is revoked (ours; REVOCATIONS entries fit)."""

LISTING_BYTES: Final = 65_536
"""Bytes in the listing of one catalogue (ours)."""

FETCH_TIMEOUT: Final = 2.0
"""Seconds one file of a catalogue may take (ours; four fit into DEPLOY_TIMEOUT)."""

CATALOGUE_MEMORY_BYTES: Final = 16_777_216
"""Bytes in the file of what a runtime remembers of catalogues (ours)."""
