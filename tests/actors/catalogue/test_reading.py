"""Whatever comes is read into what it is, or refused by the one declared error (F2, CAT-01..07)."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.errors import BadDescriptorError
from actors.catalogue.seal import read_descriptor, read_listing
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
from tests.support.catalogues import STUB_B
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


@given(st.binary(max_size=200) | JSON.map(lambda one: json.dumps(one).encode()))
def test_garbage_is_no_listing(text):
    try:
        listing = read_listing(text)
    except BadDescriptorError:
        return
    content = orjson.loads(text)
    assert listing.entries == () or content["entries"]
