"""Publishing: signs descriptors and packages, and writes them to a catalogue directory.

Any web server can serve the directory as it is. A package is written before its descriptor, and a
descriptor before the listing; each file is replaced as a whole. So a concurrent reader finds files
that fit together.
"""

from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Final

import orjson

from actors.catalogue import errors
from actors.catalogue import seal as seals
from actors.catalogue.archive import check_archive
from actors.catalogue.source import LISTING, package_path
from actors.keys.key_set import EDDSA, Keys, read_keys
from actors.keys.signing import SigningKey
from actors.kit.files import errors_of, write_whole
from fsm.catalogue.descriptor import Reason, Refused, Seen, judge_entry
from specs.addresses.address import DOMAIN_KEYS, REVOKED, CatalogueType, Entry
from specs.descriptor import LANGUAGE, Described, Listing, ListingEntry, Revocations, Revoked
from specs.errors import ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.limits import foreign_code
from specs.limits.node import JWKS_BYTES
from transports.bodies import write_body


class WrongKeyError(ProtoflyError):
    """A key is for an algorithm other than that of catalogues."""

    def __init__(self, algorithm: str) -> None:
        super().__init__(f"catalogues are signed by {EDDSA}, and this key is for {algorithm}")
        self.algorithm = algorithm


def seal_content(content: JsonObject, kind: seals.SealType, key: SigningKey) -> str:
    """Return signed content; keys are sorted, so that the same content gives the same text.

    Args:
        content: The content.
        kind: Kind of the signed text.
        key: Signing key.

    Raises:
        WrongKeyError: The key is for another algorithm.
    """
    if key.algorithm != EDDSA:
        raise WrongKeyError(key.algorithm)
    return key.sealed(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), kind)


def signed_draft(entry: Entry, draft: JsonObject, key: SigningKey) -> str:
    """Return a signed descriptor for an address.

    Args:
        entry: The catalogue address.
        draft: The descriptor; the fields of its address are added, further keys are kept.
        key: Key of the domain.

    Raises:
        BadDescriptorError: The result would be invalid, or for another address.
        WrongKeyError: The key is for another algorithm.
    """
    content: JsonObject = {
        "cguid": entry.address,
        "type": str(entry.type),
        "objectName": entry.name,
        **draft,
    }
    descriptor = seals.read_descriptor(content)
    identity = (seals.entry_of(descriptor), descriptor.type, descriptor.object_name)
    if identity != (entry, str(entry.type), entry.name):
        raise errors.BadDescriptorError(
            f"its cguid, type or objectName is not that of {entry.address}"
        )
    text = seal_content(content, seals.SealType.DESCRIPTOR, key)
    if len(text) > foreign_code.DESCRIPTOR_BYTES:
        raise errors.BadDescriptorError(
            f"signed, it is larger than {foreign_code.DESCRIPTOR_BYTES} bytes"
        )
    return text


def describe_package(
    entry: Entry, archive: bytes, entry_point: str, publisher: str, key: SigningKey
) -> JsonObject:
    """Return the part of a descriptor that describes its package.

    Args:
        entry: Catalogue address of the descriptor.
        archive: The package.
        entry_point: Entry point of the package, `module:function`.
        publisher: Name of the publisher.
        key: Key of the publisher, which signs the package.

    Raises:
        BadArchiveError: Every runtime would refuse the package.
        WrongKeyError: The key of the publisher is for another algorithm.
    """
    check_archive(archive, entry_point)
    digest = sha256(archive).hexdigest()
    promise = seals.package_statement(digest, len(archive), entry_point)
    signature = seal_content(promise, seals.SealType.PACKAGE, key)
    url = f"hyperty-catalogue://catalogue.{entry.domain}/{package_path(digest)}"
    return {
        "sourcePackageURL": url,
        "sourcePackage": {
            "encoding": "zip",
            **promise,
            "publisher": publisher,
            "signature": signature,
        },
    }


def revocation_list(
    domain: str, counter: int, expires: int, revoked: tuple[Revoked, ...], key: SigningKey
) -> str:
    """Return the signed list of revocations of a domain.

    Args:
        domain: The domain.
        counter: Number of the list; higher than that of all earlier ones.
        expires: Time until which it is valid, in seconds since the epoch (1970, UTC).
        revoked: The revocations.
        key: Key of the domain.

    Raises:
        WrongKeyError: The key is for another algorithm.
    """
    content: JsonObject = {
        "domain": domain,
        "counter": counter,
        "expires": expires,
        "revoked": [write_body(each) for each in revoked],
    }
    return seal_content(content, seals.SealType.REVOCATIONS, key)


_TEXT: Final = "the text"


class CatalogueFolder:
    """The catalogue of one domain in a directory; its methods block.

    Args:
        directory: Root directory for a web server; made if it does not exist.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keys(self) -> Keys:
        """Return the published keys of the domain.

        Raises:
            CatalogueFileError: No readable keys are published.
        """
        path = self._directory / DOMAIN_KEYS
        text = self._read(DOMAIN_KEYS, JWKS_BYTES)
        if text is None:
            raise errors.CatalogueFileError(
                path, "no keys are published there yet; `stub publish --keys` does that"
            )
        with errors_of(path, errors.CatalogueFileError):
            return read_keys(text)

    def publish(
        self, text: bytes, now: float, package: bytes | None = None, keys: bytes | None = None
    ) -> tuple[Entry, Described]:
        """Publish a descriptor, after its keys and package; if it is refused, write nothing.

        Args:
            text: The descriptor.
            now: Current time, in seconds.
            package: Its package; None: there is none, or it is published already.
            keys: The public keys of the domain, to be published; None: they are published already.

        Raises:
            BadKeysError: The keys are invalid.
            RefusedDescriptorError: Runtimes would refuse the descriptor.
            CatalogueFileError: A file cannot be read or written.
        """
        known = self.keys() if keys is None else read_keys(keys)
        entry, descriptor, digest = self._verify_draft(text, known)
        seen, revocations = self._find_published(entry), self._revocations(known)
        refused = judge_entry(entry, descriptor, digest, now, seen, revocations)
        if refused is not None:
            raise errors.RefusedDescriptorError(entry.described, refused)
        files = self._package(entry, descriptor, package)
        if keys is not None:
            files[DOMAIN_KEYS] = keys
        for path, content in files.items():
            self._write(path, content)
        self._write(entry.path, text.strip() + b"\n")
        self._list(entry)
        return entry, descriptor

    def revoke(
        self, domain: str, revoked: tuple[Revoked, ...], key: SigningKey, times: tuple[int, int]
    ) -> Revocations:
        """Add entries to the list of revocations, or only sign the list again.

        Args:
            domain: Domain of the list.
            revoked: The new entries.
            key: Key of the domain.
            times: Present time, and expiry of the list, in seconds since the epoch.

        Raises:
            CatalogueFileError: The present list cannot be read, or the new one cannot be written,
                or the catalogue is another domain's.
            RefusedDescriptorError: Runtimes would refuse the list: the catalogue has not
                published the key.
            BadDescriptorError: There would be too many entries.
            WrongKeyError: The key is for another algorithm.
        """
        now, expires = times
        keys = self.keys()
        old = self._revocations(keys)
        self._check_domain(domain, old)
        before = () if old is None else old.revoked
        entries = (*before, *(each for each in revoked if each not in before))
        counter = now if old is None else max(now, old.counter + 1)
        text = revocation_list(domain, counter, expires, entries, key)
        revocations = self._verify_list(text.encode(), keys)
        self._write(REVOKED, text.encode() + b"\n")
        return revocations

    @staticmethod
    def _verify_list(text: bytes, keys: Keys) -> Revocations:
        """Verify a list of revocations as runtimes will, before it is published."""
        try:
            return seals.signed_revocations(text, keys)
        except errors.BadSealError as exc:
            advice = "sign it with a key that is published there"
            refused = Refused(exc.refused.reason, exc.refused.why, advice)
            raise errors.RefusedDescriptorError("the list of what is revoked", refused) from exc

    def _check_domain(self, domain: str, known: Revocations | None) -> None:
        if known is not None and known.domain != domain:
            why = f"it is the list of {known.domain}; take a directory for each domain"
            raise errors.CatalogueFileError(self._directory / REVOKED, why)
        for line in self._read_listing():
            self._find_published(Entry(domain, CatalogueType(line.type), line.name))

    # ---- the published files

    def _revocations(self, keys: Keys) -> Revocations | None:
        text = self._read(REVOKED, foreign_code.REVOCATIONS_BYTES)
        if text is None:
            return None
        try:
            return seals.signed_revocations(text, keys)
        except (errors.BadSealError, errors.BadDescriptorError) as exc:
            raise errors.CatalogueFileError(self._directory / REVOKED, str(exc)) from exc

    @staticmethod
    def _verify_draft(text: bytes, keys: Keys) -> tuple[Entry, Described, str]:
        """Verify a descriptor before it is published."""
        try:
            seal = seals.read_seal(text, seals.SealType.DESCRIPTOR)
            descriptor = seals.read_descriptor(seals.read_verified(seal, keys))
            return seals.entry_of(descriptor), descriptor, seal.digest
        except (errors.BadSealError, errors.BadDescriptorError) as exc:
            raise errors.RefusedDescriptorError(_TEXT, exc.refused) from exc

    def _find_published(self, entry: Entry) -> Seen | None:
        """Return the counter and hash of the descriptor at an address; None: there is none.

        Raises:
            CatalogueFileError: The descriptor cannot be read, or is of another domain.
        """
        text = self._read(entry.path, foreign_code.REVOCATIONS_BYTES)
        if text is None:
            return None
        try:
            seal = seals.read_seal(text, seals.SealType.DESCRIPTOR)
            old = seals.read_descriptor(seal.content)
        except (errors.BadSealError, errors.BadDescriptorError) as exc:
            raise errors.CatalogueFileError(self._directory / entry.path, str(exc)) from exc
        if old.cguid != entry.address:
            where = self._directory / entry.path
            raise errors.CatalogueFileError(
                where, f"it is {old.cguid}; take a directory for each domain"
            )
        return Seen(old.counter, seal.digest)

    # ---- the files to write

    def _package(
        self, entry: Entry, descriptor: Described, package: bytes | None
    ) -> dict[str, bytes]:
        """Return the package that a descriptor promises, by its path; empty if it promises none."""
        promised = descriptor.source_package
        if promised is None:
            return {}
        path = package_path(promised.sha256)
        content = package if package is not None else self._read(path, foreign_code.PACKAGE_BYTES)
        if content is None:
            why = "its package is neither given nor published already"
            raise errors.RefusedDescriptorError(
                entry.described, Refused(Reason.NOT_THERE, why, "name it with --package")
            )
        refused = seals.flaw_of(promised, content)
        if refused is not None:
            raise errors.RefusedDescriptorError(entry.described, refused)
        return {path: content}

    def _list(self, entry: Entry) -> None:
        line = ListingEntry(type=str(entry.type), name=entry.name)
        known = self._read_listing()
        if line not in known:
            listing = Listing(entries=(*known, line))
            self._write(LISTING, orjson.dumps(write_body(listing), option=orjson.OPT_INDENT_2))

    def _read_listing(self) -> tuple[ListingEntry, ...]:
        text = self._read(LISTING, foreign_code.LISTING_BYTES)
        try:
            return () if text is None else seals.read_listing(text).entries
        except errors.BadDescriptorError as exc:
            raise errors.CatalogueFileError(self._directory / LISTING, exc.reason) from exc

    def _read(self, path: str, limit: int) -> bytes | None:
        where = self._directory / path
        with errors_of(where, errors.CatalogueFileError):
            try:
                with where.open("rb") as file:
                    content = file.read(limit + 1)
            except FileNotFoundError:
                return None
        if len(content) > limit:
            raise errors.CatalogueFileError(where, f"it is larger than {limit} bytes")
        return content

    def _write(self, path: str, content: bytes) -> None:
        where = self._directory / path
        with errors_of(where, errors.CatalogueFileError):
            write_whole(where, content)


# Descriptors of upstream's catalogues, converted to drafts.

_FILLED_IN: Final = ("cguid", "type", "signature", "sourcePackage", "sourcePackageURL")
"""Fields that upstream fills with values of no meaning here; drafts keep theirs."""


def adopt_draft(entry: Entry, draft: JsonObject) -> JsonObject:
    """Return a draft for an address from a file of upstream; return a draft unchanged.

    Args:
        entry: The catalogue address.
        draft: The content of the file.

    Raises:
        BadDescriptorError: The file is of upstream, and no runtime here could use it.
    """
    named = draft.get(entry.name)
    if isinstance(named, dict) and not {"version", "objectName"} & draft.keys():
        draft = named
    package = draft.get("sourcePackage")
    has_source = isinstance(package, dict) and "sourceCode" in package
    if isinstance(draft.get("cguid", ""), str) and not has_source:
        return draft
    rest: JsonObject = {key: each for key, each in draft.items() if key not in _FILLED_IN}
    if rest.get("configuration") == []:
        rest["configuration"] = {}
    if isinstance(package, dict) and package.get("sourceCode"):
        if entry.type is not CatalogueType.SCHEMA:
            language = draft.get("language", "an unnamed language")
            why = f"its code is in {language}, and only {LANGUAGE} can run here"
            raise errors.BadDescriptorError(f"{why}; write it anew and sign it with --package")
        rest |= _schema_in(package)
    return rest


def _schema_in(package: JsonObject) -> JsonObject:
    """Return the fields that the JSON Schema in a package gives.

    Raises:
        BadDescriptorError: There is no such schema.
    """
    source = package.get("sourceCode")
    try:
        schema: Json = orjson.loads(b64decode(source if isinstance(source, str) else ""))
    except ValueError as exc:
        raise errors.BadDescriptorError("its sourceCode is no JSON Schema in base64") from exc
    if not isinstance(schema, dict):
        raise errors.BadDescriptorError("its sourceCode is no JSON Schema in base64")
    fields: JsonObject = {"schema": schema}
    properties = schema.get("properties")
    for name in ("scheme", "children"):
        definition = properties.get(name) if isinstance(properties, dict) else None
        if isinstance(definition, dict) and "constant" in definition:
            fields[name] = definition["constant"]
    return fields
