"""Options of a runtime about other domains: their nodes, their catalogues, and trust in them."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from actors.catalogue import source
from actors.cli import group, options
from actors.kit.ids import clock_offset
from actors.runtime.config import RuntimeConfig

if TYPE_CHECKING:
    from actors.catalogue.client import CatalogueAccess
    from actors.catalogue.trust_file import Trust


CATALOGUE: Final = options.option(
    "[DOMAIN=]WHERE",
    text=(
        "Directory or URL where a domain describes how it is reached, such as "
        "b.example=https://catalogue.b.example; repeatable. Without DOMAIN it serves all "
        "other domains, whose name replaces {domain} in it."
    ),
    flag="--catalogue",
    multiple=True,
    gather=lambda values: source.read_places(values) if values else None,
)

TRUST: Final = options.option(
    text=(
        "TOML file of trusted domains, publishers and identity providers; what catalogues have "
        "shown is kept beside it."
    )
)

FOREIGN: Final = options.option(
    "DOMAIN=URL",
    text="URL of another domain's node, for the triangle; repeatable.",
    name="foreign",
    read=options.read_route,
)


def catalogue_access(
    places: source.Places | None, trust: Path | None, name: str
) -> "CatalogueAccess | None":
    """Return the access to catalogues; None: no option asks for it.

    `name` names the store of what was accepted; no two processes may share one.

    Raises:
        CommandError: One option is there without the other.
        TrustFileError: The file is wrong.
    """
    if places is None and trust is None:
        return None
    if places is None or trust is None:
        raise group.CommandError(
            "--catalogue and --trust go together: where stubs of other domains are described, "
            "and trusted signers; add the other one"
        )
    # Signatures are slow to import, and not needed without fetching.
    from actors.catalogue.client import CatalogueAccess, CatalogueStore  # noqa: PLC0415
    from actors.catalogue.memory import FileMemory, FolderStore  # noqa: PLC0415
    from actors.catalogue.trust_file import read_trust  # noqa: PLC0415

    kept = trust.with_name(f"{trust.name}.seen") / name
    store = CatalogueStore(FileMemory(kept / "memory.json"), FolderStore(kept / "packages"))
    return CatalogueAccess(places, read_trust(trust), store)


def timed(config: RuntimeConfig) -> RuntimeConfig:
    """Set a runtime's clocks to the time of day; Trio's clock runs only now."""
    offset, access = clock_offset(), config.catalogues
    if access is not None:
        access = attrs.evolve(access, clock_offset=offset)
    return attrs.evolve(config, catalogues=access, clock_offset=offset)


def believed(path: Path | None) -> "Trust | None":
    """Return whom a trust file trusts; None: there is no file.

    Raises:
        TrustFileError: The file is wrong.
    """
    from actors.catalogue.trust_file import read_trust  # noqa: PLC0415 - as above

    return None if path is None else read_trust(path)
