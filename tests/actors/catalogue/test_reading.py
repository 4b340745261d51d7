"""Whatever comes is read into what it is, or refused by the one declared error (F2, CAT-01..07)."""

import json

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.catalogue.errors import BadDescriptorError, BadSealError
from actors.catalogue.publishing import seal_content
from actors.catalogue.seal import (
    SealType,
    entry_of,
    read_descriptor,
    read_listing,
    read_revocations,
    read_seal,
    read_verified,
)
from actors.keys.signing import make_key
from specs.addresses.address import CatalogueType
from specs.descriptor import (
    DESCRIPTORS,
    LANGUAGE,
    HypertyDescriptor,
    IdpProxyDescriptor,
    RuntimeDescriptor,
    SchemaDescriptor,
    StubDescriptor,
)
from tests.support.catalogues import STUB_B, Publishing, keys_of
from tests.support.chance import examples
from transports.bodies import write_body

COMMON = {
    "cguid": STUB_B.address,
    "version": "1.0",
    "objectName": "default",
    "counter": 3,
    "expires": 10,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(max_size=20),
    lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(max_size=12), one, max_size=6),
    max_leaves=20,
)
KEY = make_key("EdDSA", "k")


@pytest.mark.parametrize(
    ("kind", "said", "made"),
    [
        ("hyperty", {"hypertyType": ["comm"], "dataObjects": ["x"]}, HypertyDescriptor),
        ("protocolstub", {"interworking": True, "constraints": {"a": 1}}, StubDescriptor),
        ("runtime", {"runtimeType": "gateway", "p2pHandlerStub": ""}, RuntimeDescriptor),
        ("dataschema", {"schema": {}, "scheme": "comm", "children": ["c"]}, SchemaDescriptor),
        ("idp-proxy", {"idpProxy": True}, IdpProxyDescriptor),
    ],
)
def test_each_type_has_a_class_of_its_own(kind, said, made):
    """CAT-02, CAT-03, CAT-04, CAT-05, CAT-06."""
    descriptor = read_descriptor({**COMMON, "type": kind, **said})
    assert type(descriptor) is made
    written = write_body(descriptor)
    assert {name: written[name] for name in said} == said
    assert read_descriptor(written) == descriptor


@pytest.mark.parametrize("kind", list(CatalogueType))
def test_all_have_the_same_in_common(kind):
    """CAT-01: as it is written; and what it does not say of its language is ours."""
    said = {
        "description": "for people",
        "language": "ECMASCRIPT",
        "sourcePackageURL": f"{STUB_B.address}/sourcePackage",
        "accessControlPolicy": "any",
    }
    least = {**COMMON, "type": kind.value, **({"schema": {}} if kind == "dataschema" else {})}
    written = write_body(read_descriptor(least | said))
    assert written == written | COMMON | said
    assert read_descriptor(least).language == LANGUAGE


def test_every_type_is_tried():
    assert set(DESCRIPTORS) == set(CatalogueType)


def test_an_empty_stub_of_a_runtime_is_none():
    """CAT-04, U-38: the testbeds ship empty ones."""
    said = {"p2pHandlerStub": "", "p2pRequesterStub": STUB_B.address}
    descriptor = read_descriptor({**COMMON, "type": "runtime", **said})
    assert descriptor.p2p == (None, STUB_B.address)


def test_keys_of_its_own_survive_in_what_is_signed():
    domain = Publishing()
    text = domain.serves(domain.profile(mine={"a": [1]}))
    assert read_seal(text.encode(), SealType.DESCRIPTOR).content["mine"] == {"a": [1]}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"type": "stub"}, "its type is none of"),
        ({"counter": 0}, "descriptor.counter must be >= 1"),
        ({"counter": 1.5}, "descriptor.counter"),
        ({"expires": "soon"}, "descriptor.expires"),
        ({"cguid": "nowhere"}, "descriptor.cguid"),
        ({"profile": {"endpoint": "x"}}, "descriptor.profile.stub is missing"),
        ({"sourcePackage": {"size": 1}}, "descriptor.sourcePackage.sourceCodeClassname is missing"),
        ({"endpoints": "ws://x"}, "descriptor.endpoints must be a list"),
    ],
)
def test_the_wrong_field_is_named(said, why):
    with pytest.raises(BadDescriptorError) as caught:
        read_descriptor({**COMMON, "type": "protocolstub", **said})
    assert why in caught.value.reason


@pytest.mark.parametrize("name", ["sha256", "size", "publisher", "signature"])
def test_a_package_without_its_promises_is_no_package(name, tmp_path):
    domain = Publishing()
    said = {"sourceCodeClassname": "a:b", "sha256": "0" * 64, "size": 1, "publisher": "p"}
    whole = {**said, "signature": "s"}
    whole.pop(name)
    with pytest.raises(BadDescriptorError, match=f"sourcePackage.{name} is missing"):
        read_descriptor(
            {**COMMON, **domain.draft(), "type": "protocolstub", "sourcePackage": whole}
        )


@settings(max_examples=examples(80))
@given(JSON)
def test_garbage_is_no_descriptor(content):
    """F2: only the declared error gets out."""
    if isinstance(content, dict):
        with pytest.raises(BadDescriptorError):
            read_descriptor(content)
        with pytest.raises(BadDescriptorError):
            read_revocations(content)


@settings(max_examples=examples(80))
@given(
    kind=st.sampled_from(list(CatalogueType)),
    spoilt=st.dictionaries(
        st.sampled_from(
            [
                "cguid", "version", "objectName", "description", "language", "sourcePackageURL",
                "sourcePackage", "counter", "expires", "profile", "endpoints", "machine",
                "configuration", "constraints", "schema", "hypertyType", "p2pHandlerStub",
            ]
        ),
        JSON,
        min_size=1,
        max_size=4,
    ),
)  # fmt: skip
def test_a_spoilt_descriptor_is_read_or_refused(kind, spoilt):
    content = {**COMMON, "type": str(kind), "schema": {}, **spoilt}
    try:
        descriptor = read_descriptor(content)
        entry_of(descriptor)
    except BadDescriptorError:
        return
    assert read_descriptor(write_body(descriptor)) == descriptor


@settings(max_examples=examples(80))
@example(b"..")
@example(b"e30.e30.e30")
@example(b"bnVsbA.bnVsbA.AA")
@given(st.binary(max_size=300))
def test_garbage_is_not_signed(text):
    with pytest.raises(BadSealError):
        read_seal(text, SealType.DESCRIPTOR)


GOOD = seal_content({"a": 1, "b": "two"}, SealType.DESCRIPTOR, KEY).encode()


@settings(max_examples=examples(80))
@given(place=st.integers(0, len(GOOD) - 1), byte=st.integers(0, 255))
def test_one_changed_byte_is_not_signed_or_means_the_same(place, byte):
    """A signature's last character has bits that count for nothing; no other change is let pass."""
    changed = GOOD[:place] + bytes([byte]) + GOOD[place + 1 :]
    try:
        content = read_verified(read_seal(changed, SealType.DESCRIPTOR), keys_of(KEY))
    except BadSealError:
        return
    assert content == {"a": 1, "b": "two"}


def test_the_signed_bytes_are_the_parsed_bytes():
    assert read_verified(read_seal(GOOD, SealType.DESCRIPTOR), keys_of(KEY)) == {"a": 1, "b": "two"}
    assert read_verified(read_seal(GOOD + b"\n", SealType.DESCRIPTOR), keys_of(KEY))


@given(st.binary(max_size=200) | JSON.map(lambda one: json.dumps(one).encode()))
def test_garbage_is_no_listing(text):
    try:
        listing = read_listing(text)
    except BadDescriptorError:
        return
    content = orjson.loads(text)
    assert listing.entries == () or content["entries"]
