"""The file of servers of STUN and TURN (CON-04)."""

import pytest

from actors.kit.back_ends.ice import IceFileError, read_ice
from specs.limits.p2p import LISTED_SERVERS

FILE = """
[[server]]
urls = ["stun:stun.a.ex", "stuns:[2001:db8::7]:5349"]

[[server]]
urls = ["turn:turn.a.ex:3478?transport=udp"]
secret = "shared"
"""


def written(place, text, mode=0o600):
    file = place / "ice.toml"
    file.write_text(text)
    file.chmod(mode)
    return file


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("server = [", "it is no TOML"),
        ("\ufeff[[server]]\n", "byte order mark"),
        ("ttl = 60", "no list of tables"),
        ("[[server]]", "server 1: urls is no list"),
        ("[[server]]\nurls = []", "all of STUN or all of TURN"),
        ("[[server]]\nurls = ['http://x']", "'http://x' is no URL"),
        ("[[server]]\nurls = ['stun:a', 'turn:a']", "all of STUN or all of TURN"),
        ("[[server]]\nurls = ['stun:a']\nsecret = 's'", "nothing opens a server of STUN"),
        ("[[server]]\nurls = ['turn:a']", "has a secret, or a username"),
        ("[[server]]\nurls = ['turn:a']\nsecret = 's'\nusername = 'u'", "has a secret, or"),
        ("[[server]]\nurls = ['turn:a']\nsecret = 5", "secret is no text"),
        ("[[server]]\nurls = ['turn:a']\npassword = 's'", "server 1: unknown key 'password'"),
        (f"{FILE}ttl = 5", "server 2: unknown key 'ttl'"),
        (f"ttl = 5{FILE}", "ttl is not between"),
        (f"ttl = true{FILE}", "ttl is no number"),
        ("[[server]]\nurls = ['stun:a']\n" * (LISTED_SERVERS + 1), "more than"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_place(tmp_path, text, why):
    with pytest.raises(IceFileError, match="cannot use the list of servers") as caught:
        read_ice(written(tmp_path, text))
    assert why in str(caught.value)
