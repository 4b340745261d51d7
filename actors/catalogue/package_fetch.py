"""Packages of stubs: taken from what is kept, or fetched, and each held against its promise."""

from actors.catalogue.errors import NotServedError, SourceAwayError
from actors.catalogue.opening import flaw_of
from actors.catalogue.package_store import PackageStore
from actors.catalogue.refusals import RefusalError, from_error
from actors.catalogue.source import Source, package_path
from specs.descriptor import SourcePackage
from specs.limits.catalogue import PACKAGE_BYTES

__all__ = ["fetched_package"]


async def fetched_package(store: PackageStore, source: Source, promised: SourcePackage) -> bytes:
    """Return the bytes that a verified descriptor promises; they are kept from then on.

    What is kept is judged like what is fetched: whatever keeps it may have changed it.

    Cancelled: the package may be kept.

    Raises:
        RefusalError: It is not served, or is not what was promised.
    """
    kept = await store.get(promised.sha256)
    if kept is not None and flaw_of(promised, kept) is None:
        return kept
    try:
        content = await source.read(package_path(promised.sha256), PACKAGE_BYTES)
    except (NotServedError, SourceAwayError) as exc:
        raise RefusalError(from_error(exc)) from exc
    refused = flaw_of(promised, content)
    if refused is not None:
        raise RefusalError(refused)
    await store.put(promised.sha256, content)
    return content
