"""Client of catalogues: fetches descriptors of other domains, and verifies them (T12..T15, S16).

The checks run in the order of least trust: the domain, its keys, its revocations, the signature,
the signed content, and only then the package. Nothing that was fetched is executed here, or written
anywhere but into the memory of the client.
"""

from collections.abc import Mapping
from typing import Final, Generic, TypeVar, final

import attrs
import trio

from actors.catalogue import errors, seal
from actors.catalogue.memory import CatalogueStore, Kept, Known, fetched_package
from actors.catalogue.source import BadPlaceError, Places, Source
from actors.catalogue.trust_file import DomainTrust, KeyTrust, Trust
from actors.keys.key_set import BadKeysError, Keys, read_keys
from actors.kit.arguments import type_checked
from actors.kit.log import get_logger
from fsm.catalogue.descriptor import (
    Here,
    Level,
    Reach,
    Reason,
    Refused,
    Seen,
    judge_entry,
    judge_revocations,
    judge_use,
)
from specs.addresses.address import DOMAIN_KEYS, REVOKED, Entry
from specs.capability import narrow
from specs.descriptor import (
    HypertyDescriptor,
    Revocations,
    RuntimeDescriptor,
    SchemaDescriptor,
    SourcePackage,
    StubDescriptor,
)
from specs.limits import foreign_code
from specs.limits.node import JWKS_BYTES

_NO_PLACE: Final = Refused(
    Reason.NOT_THERE, "no catalogue is configured for its domain", "name one with --catalogue"
)
_CROWDED: Final = Refused(
    Reason.TOO_LARGE,
    f"its domain has more than {foreign_code.CATALOGUE_DOMAIN_BYTES} bytes of descriptors",
    "ask the domain for fewer, or smaller ones",
)
_UNPROVED: Final = Refused(
    Reason.WRONG_KEY,
    "its keys are published where nothing proves whose they are",
    "name its catalogue with https, or its keys in the trust file",
)


def domain_trust(trust: Trust, domain: str) -> DomainTrust:
    """Return the operator's trust settings for a domain.

    Raises:
        RefusalError: The trust file has no entry for the domain.
    """
    trusted = trust.of(domain)
    if trusted is None:
        why = f"no entry of the trust file names {domain}"
        advice = "name its keys in the trust file if you do"
        raise errors.RefusalError(Refused(Reason.UNKNOWN_DOMAIN, why, advice))
    return trusted


async def keys_of(
    key_trust: Keys | KeyTrust, source: Source, known: str | None
) -> tuple[Keys, str | None]:
    """Return the keys that sign a domain's descriptors, and the text of the published key set.

    Args:
        key_trust: The keys, or their source.
        source: The catalogue of the domain.
        known: The key set that was published and trusted before; None: there is none.

    If cancelled, nothing has changed.

    Raises:
        RefusalError: There are no keys that can be trusted.
    """
    if not isinstance(key_trust, KeyTrust):
        return key_trust, None
    if key_trust is KeyTrust.FIRST_USE and known is not None:
        return _read(known), known
    if key_trust is KeyTrust.PUBLISHED and not source.proves_domain:
        raise errors.RefusalError(_UNPROVED)
    try:
        text = (await source.read(DOMAIN_KEYS, JWKS_BYTES)).decode(errors="replace")
    except (errors.NotServedError, errors.SourceAwayError):
        if known is None:
            raise
        text = known
    return _read(text), text


def _read(text: str) -> Keys:
    try:
        return read_keys(text.encode())
    except BadKeysError as exc:
        why = f"its keys cannot be used: {exc.reason}"
        raise errors.RefusalError(
            Refused(Reason.WRONG_KEY, why, "ask the domain to mend them")
        ) from exc


_log = get_logger("actors.catalogue")

D = TypeVar("D", StubDescriptor, SchemaDescriptor, RuntimeDescriptor, HypertyDescriptor)


@attrs.frozen
class Found(Generic[D]):
    """Verified descriptor that may be used, with its package.

    Attributes:
        digest: Hash of the signed bytes.
        reach: Network addresses that a stub may dial.
        package: The code, which its publisher has signed; None: there is no code that can run.
    """

    descriptor: D
    digest: str
    reach: Reach
    package: bytes | None = attrs.field(repr=False)

    @property
    def level(self) -> Level:
        """Kind of use: configuration of a stub that ships here, or a package in a sandbox."""
        return Level.PROFILE if self.package is None else Level.PACKAGE


@attrs.frozen
class _Visit:
    """Data of one access to the catalogue of a domain, such as keys and revocations.

    Attributes:
        trust: The trust of the operator in the domain.
        revocations: The newest list of revocations of the domain, with its text.
    """

    entry: Entry
    source: Source
    trust: DomainTrust
    keys: Keys
    published: str | None
    revocations: tuple[Revocations, str] | None


class CatalogueClient:
    """Client that finds and verifies descriptors in catalogues.

    For each domain one task works at a time; a slow catalogue does not delay other domains.

    Args:
        here: Abilities of this runtime.
        offset: Seconds from the Trio clock to the epoch (1970, UTC).
    """

    def __init__(
        self, places: Places, trust: Trust, here: Here, store: CatalogueStore, offset: float
    ) -> None:
        self._places = places
        self._trust = trust
        self._here = here
        self._store = store
        self._offset = offset
        self._kept: Kept | None = None
        self._fetched: dict[Entry, float] = {}
        self._locks: dict[str, trio.Lock] = {}
        self._saving = trio.Lock()

    async def find(self, entry: Entry) -> Found[StubDescriptor]:
        """Fetch and verify the descriptor of a stub, and its package if it has one.

        If cancelled, entries verified so far may be kept; nothing that was kept is lost.

        Raises:
            RefusedDescriptorError: The stub must not be deployed.
            CatalogueFileError: The memory cannot be read or written, so nothing can be trusted.
        """
        return await self._look(entry, StubDescriptor)

    async def find_schema(self, entry: Entry) -> SchemaDescriptor:
        """Fetch and verify the descriptor of a data schema.

        If cancelled, entries verified so far may be kept; nothing that was kept is lost.

        Raises:
            RefusedDescriptorError: The schema must not be used.
            CatalogueFileError: The memory cannot be read or written, so nothing can be trusted.
        """
        return (await self._look(entry, SchemaDescriptor)).descriptor

    async def find_hyperty(self, entry: Entry) -> Found[HypertyDescriptor]:
        """Fetch and verify the descriptor of a hyperty, and its package (HYP-01).

        If cancelled, entries verified so far may be kept; nothing that was kept is lost.

        Raises:
            RefusedDescriptorError: The hyperty must not run.
            CatalogueFileError: The memory cannot be read or written, so nothing can be trusted.
        """
        return await self._look(entry, HypertyDescriptor)

    async def find_runtime(self, entry: Entry) -> RuntimeDescriptor:
        """Fetch and verify the descriptor of a runtime.

        If cancelled, entries verified so far may be kept; nothing that was kept is lost.

        Raises:
            RefusedDescriptorError: The descriptor must not be used.
            CatalogueFileError: The memory cannot be read or written, so nothing can be trusted.
        """
        return (await self._look(entry, RuntimeDescriptor)).descriptor

    def narrow(self, own: RuntimeDescriptor) -> None:
        """Also restrict usable descriptors to the capabilities in this runtime's own descriptor.

        Args:
            own: The descriptor of this runtime.
        """
        here = self._here
        hyperties, protocols = here.hyperties or {}, here.protocols or {}
        self._here = attrs.evolve(
            here,
            hyperties=narrow(hyperties, own.hyperty_capabilities),
            protocols=narrow(protocols, own.protocol_capabilities),
        )

    async def _look(self, entry: Entry, kind: type[D]) -> Found[D]:
        lock = self._locks.setdefault(entry.domain, trio.Lock())
        try:
            async with lock:
                return await self._find(entry, kind)
        except errors.RefusalError as exc:
            self._fetched.pop(entry, None)
            raise errors.RefusedDescriptorError(entry.described, exc.refused) from exc
        finally:
            if not lock.locked():
                self._locks.pop(entry.domain, None)

    async def _find(self, entry: Entry, kind: type[D]) -> Found[D]:
        trust, kept = domain_trust(self._trust, entry.domain), await self._load()
        try:
            async with self._places.open(entry.domain) as source:
                if source is None:
                    raise errors.RefusalError(_NO_PLACE)
                keys, published = await keys_of(trust.keys, source, kept.keys.get(entry.domain))
                revocations = await self._revocations(entry.domain, source, keys)
                visit = _Visit(entry, source, trust, keys, published, revocations)
                if trust.keys is not KeyTrust.FIRST_USE or entry.domain in kept.keys:
                    await self._remember(visit, {})
                descriptor, digest = await self._verify(kind, visit)
                package = None
                if isinstance(descriptor, StubDescriptor | HypertyDescriptor):
                    package = await self._package(source, descriptor.source_package)
                return Found(descriptor, digest, trust.terms.reach, package)
        except BadPlaceError as exc:
            raise errors.RefusalError(_NO_PLACE) from exc

    async def _load(self) -> Kept:
        if self._kept is None:
            self._kept = await self._store.load()
        return self._kept

    def _now(self) -> float:
        return trio.current_time() + self._offset

    # ---- revocations

    async def _revocations(
        self, domain: str, source: Source, keys: Keys
    ) -> tuple[Revocations, str] | None:
        """Return a domain's newest list of revocations; the last one if none is served now."""
        text = (await self._load()).revoked.get(domain)
        known = None if text is None else seal.known_revocations(text)
        try:
            served = await source.read(REVOKED, foreign_code.REVOCATIONS_BYTES)
        except (errors.NotServedError, errors.SourceAwayError):
            return None if known is None or text is None else (known, text)
        revocations = seal.signed_revocations(served, keys)
        errors.refuse_if(judge_revocations(domain, revocations, known, self._now()))
        return revocations, served.decode()

    # ---- the descriptor

    async def _package(self, source: Source, promised: SourcePackage | None) -> bytes | None:
        if promised is None:
            return None
        seal.check_publisher(promised, self._trust.publishers.get(promised.publisher, {}))
        return await fetched_package(self._store, source, promised)

    async def _verify(self, kind: type[D], visit: _Visit) -> tuple[D, str]:
        """Return a verified descriptor that may be used, and the hash of its signed bytes."""
        sealed = await self._fetch(visit)
        descriptor = seal.verify_descriptor(kind, sealed, visit.keys)
        # New keys count from here on: they have signed the requested descriptor.
        await self._remember(visit, {})
        entry, digest = visit.entry, sealed.digest
        known = None if self._kept is None else self._kept.known.get(entry)
        seen = None if known is None else known.seen
        revocations = None if visit.revocations is None else visit.revocations[0]
        errors.refuse_if(
            judge_entry(entry, descriptor, digest, self._now(), seen, revocations)
            or judge_use(descriptor, visit.trust.terms, self._here, revocations)
        )
        seen = Seen(descriptor.counter, digest)
        await self._remember(visit, {entry: Known(seen, sealed.signed.text)})
        return descriptor, digest

    async def _fetch(self, visit: _Visit) -> seal.Sealed:
        """Return the newest available descriptor, with an unverified signature."""
        entry = visit.entry
        known = (await self._load()).known.get(entry)
        text = None if known is None else known.text.encode()
        if text is None or not self._is_fresh(entry):
            try:
                text = await visit.source.read(entry.path, foreign_code.DESCRIPTOR_BYTES)
                self._fetched[entry] = trio.current_time()
            except errors.SourceAwayError as exc:
                if text is None:
                    raise
                _log.warning("catalogue away", entry=entry.address, why=exc.reason)
        return seal.read_seal(text, seal.SealType.DESCRIPTOR)

    def _is_fresh(self, entry: Entry) -> bool:
        fetched = self._fetched.get(entry)
        return fetched is not None and trio.current_time() - fetched < foreign_code.DESCRIPTOR_FRESH

    async def _remember(self, visit: _Visit, fresh: Mapping[Entry, Known]) -> None:
        """Store verified entries before they are used, so that a crash cannot undo them.

        Revocations are stored even if the descriptor is refused: otherwise they would be lost just
        when they refuse a descriptor.

        Raises:
            RefusalError: The stored descriptors of the domain have reached their limit.
        """
        async with self._saving:
            old, domain = await self._load(), visit.entry.domain
            known = {**old.known, **fresh}
            sizes = [len(each.text) for entry, each in known.items() if entry.domain == domain]
            if fresh and sum(sizes) > foreign_code.CATALOGUE_DOMAIN_BYTES:
                raise errors.RefusalError(_CROWDED)
            revoked, keys = dict(old.revoked), dict(old.keys)
            if visit.revocations is not None:
                revoked[domain] = visit.revocations[1]
            if visit.published is not None:
                keys[domain] = visit.published
            kept = Kept(known, revoked, keys)
            if kept != old:
                await self._store.save(kept)
                self._kept = kept


@final
@attrs.frozen(field_transformer=type_checked)
class CatalogueAccess:
    """The catalogues of a runtime, and its trust in their content.

    Attributes:
        places: Directory or server of the catalogue of each domain; made by `read_places`.
        trust: Trusted keys and publishers; made by `read_trust`.
        store: Memory of accepted descriptors and packages. By default it ends with the process: a
            runtime that has just started can be given an old descriptor as a new one.
        clock_offset: Seconds from the Trio clock to the epoch (1970, UTC).
    """

    places: Places
    trust: Trust
    store: CatalogueStore = attrs.field(factory=CatalogueStore)
    clock_offset: float = 0.0
