"""Who is trusted, as an operator writes it (T12, T13): every mistake is one sentence."""

import json

import pytest

from actors.catalogue.errors import TrustFileError
from actors.catalogue.source import BadPlaceError, Places, read_places
from actors.catalogue.trust_file import read_trust
from actors.keys.signing import make_key
from tests.support.catalogues import key_set

TWO = '[[issuer]]\nname = "x"\nkeys = "{}"\n[[issuer]]\nname = "y"\nkeys = "{}"\n'


def test_issuers_with_one_set_have_the_keys_that_name_them(write):
    """RFC 8725, 3.8."""
    issuers = read_trust(write(TWO.format("xy.json", "xy.json"))).issuers
    assert {name: [*trust.keys] for name, trust in issuers.items()} == {"x": ["1"], "y": ["2"]}


@pytest.fixture
def write(tmp_path):
    own = [{**make_key("EdDSA", str(at)).public(), "iss": name} for at, name in enumerate("xy", 1)]
    (tmp_path / "xy.json").write_text(json.dumps({"keys": own}))
    (tmp_path / "y.json").write_text(json.dumps({"keys": own[1:]}))
    (tmp_path / "b.json").write_bytes(key_set(make_key("EdDSA", "b")))
    (tmp_path / "acme.json").write_bytes(key_set(make_key("EdDSA", "acme")))
    (tmp_path / "bad.json").write_text("{}")

    def written(text):
        path = tmp_path / "trust.toml"
        path.write_text(text)
        return path

    return written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "it is no TOML"),
        ("\ufeff[domains]\n", "byte order mark"),
        ("domain = 1", "the file: unknown key 'domain'"),
        ("domains = 1", "'domains' is no table"),
        ("[domains]\nx = 1", "is no table"),
        ('[domains."b.ex"]', "keys is missing"),
        ('[domains."b.ex"]\nkeys = 1', "keys is missing, or no text"),
        ('[domains."b.ex"]\nkeys = "gone.json"', "gone.json cannot be read"),
        ('[domains."b.ex"]\nkeys = "bad.json"', "bad.json is no set of keys"),
        ('[domains."b.ex"]\nkey = "b.json"', ": unknown key 'key'"),
        ('[domains."b ex"]\nkeys = "b.json"', "'b ex' is no domain"),
        ('[domains."b.ex"]\nkeys = "b.json"\nreach = "all"', "reach is one of public, anywhere"),
        ('[domains."b.ex"]\nkeys = "b.json"\npublishers = "x"', "publishers is no list"),
        ('[domains."b.ex"]\nkeys = "b.json"\npublishers = ["x"]', "allows 'x', which"),
        ('[domains."b.ex"]\nkeys = ["b.json"]', "keys is missing, or no text"),
        ('[domains."b.ex"]\nkeys = {a = 1}', "keys is missing, or no text"),
        (
            '[domains."b.ex"]\nkeys = "b.json"\n[domains."B.ex"]\nkeys = "first-use"',
            "domain 'b.ex' stands there twice",
        ),
        (
            '[domains."*"]\nkeys = "published"\nstatements = "b.json"',
            "domain '*': statements belong to one domain",
        ),
        ('[publishers.x]\nkeys = "first-use"', "first-use cannot be read"),
    ],
)
def test_a_mistake_is_said(write, text, said):
    with pytest.raises(TrustFileError) as caught:
        read_trust(write(text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value).partition("TOML")[0]


# ---- where catalogues are


async def name_of(places: Places, domain):
    async with places.open(domain) as source:
        return None if source is None else (source.name, source.proves_domain)


async def test_a_domain_that_is_named_comes_before_all_others():
    places = read_places(["/srv/{domain}", "b.ex=/srv/own"])
    assert await name_of(places, "b.ex") == ("/srv/own", True)
    assert await name_of(places, "c.ex") == ("/srv/c.ex", True)


@pytest.mark.parametrize(
    "texts",
    [[""], ["b.ex="], ["b ex=/srv"], ["ftp://x"], ["http://"], ["http://u@h"], ["http://h?q"],
     ["a", "b"], ["b.ex=a", "b.ex=b"]],
)  # fmt: skip
def test_an_invalid_place_is_reported(texts):
    with pytest.raises(BadPlaceError):
        read_places(texts)


@pytest.mark.parametrize("host", ["127.0.0.2", "[::1]", "localhost"])
def test_an_identity_provider_on_this_machine_needs_no_tls(write, host):
    text = f'[[issuer]]\nname = "x"\nkeys = "http://{host}:1/keys"'
    assert read_trust(write(text)).issuers["x"].keys.text == f"http://{host}:1/keys"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[issuer]\nname = "x"', "no list of tables"),
        ('[[issuer]]\nkeys = "b.json"', "has no name"),
        ('[[issuer]]\nname = ""\nkeys = "b.json"', "has no name"),
        ('[[issuer]]\nname = "x"', "keys is missing"),
        ('[[issuer]]\nname = "x"\nkeys = "gone.json"', "cannot be read"),
        ('[[issuer]]\nname = "x"\nkeys = "http://idp.example/k"', "keys come by https"),
        ('[[issuer]]\nname = "x"\nkeys = "ftp://idp.example/k"', "names no HTTP server"),
        ('[[issuer]]\nname = "x"\nkeys = "b.json"\naudience = [1]', "no list of texts"),
        ('[[issuer]]\nname = "x"\nkeys = "b.json"\nclients = [""]', "no list of texts"),
        ('[[issuer]]\nname = "x"\nkeys = "b.json"\nrole = "y"', "unknown key 'role'"),
        ('[[issuer]]\nname = "x"\nkeys = "b.json"\n' * 2, "stands there twice"),
        (TWO.format("b.json", "./b.json"), "could sign for this one"),
        (TWO.format("https://idp.ex/k", "https://idp.ex/k"), "could sign for this one"),
        (TWO.format("y.json", "b.json"), "issuer 'x': no key of its set is its own"),
        (
            '[domains."b.example"]\nkeys = "published"\nstatements = 1',
            "keys is missing, or no text",
        ),
    ],
)
def test_a_mistake_about_identity_providers_is_one_sentence(write, text, why):
    with pytest.raises(TrustFileError, match=why):
        read_trust(write(text))
