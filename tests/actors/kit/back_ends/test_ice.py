"""The file of servers of STUN and TURN (CON-04)."""

import pytest

from actors.kit.back_ends.ice import IceFileError, IcePlan, ListedServer, read_ice
from specs.limits.p2p import ICE_TTL, LISTED_SERVERS

SHARED, NORTH = "shared", "north"
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


def test_a_file_lists_servers(tmp_path):
    plan = read_ice(written(tmp_path, FILE))
    stun = ListedServer(("stun:stun.a.ex", "stuns:[2001:db8::7]:5349"))
    turn = ListedServer(("turn:turn.a.ex:3478?transport=udp",), secret=SHARED)
    assert plan == IcePlan((stun, turn), ICE_TTL)
    assert "shared" not in repr(plan)


def test_the_same_runtime_has_the_same_user_and_passwords_follow_the_time():
    """Vector: `printf 1003600:<digits> | openssl dgst -sha1 -hmac north -binary | base64`."""
    plan = IcePlan((ListedServer(("turn:t.ex",), secret=NORTH),))
    early, late = (plan.servers_for("hyperty-runtime://a.ex/ra", now) for now in (1e6, 2e6))
    (one,), (other,) = early.servers, late.servers
    assert one.username == "1003600:0d55ae223edfb55cfa9d886e48263b26"
    assert one.credential == "/z0XzifLhIX5aUs9Fu8/F32SATA="
    assert one.username.partition(":")[2] == other.username.partition(":")[2]
    assert one.credential != other.credential
    assert one.credential not in repr(early)


def test_what_does_not_end_has_no_ttl():
    plan = IcePlan((ListedServer(("turn:t.ex",), username="u", credential="c"),))
    assert plan.servers_for("r", 0).ttl is None


def test_a_list_without_turn_has_no_relay():
    assert IcePlan((ListedServer(("stun:s.ex",)),)).relay("n", 0) is None


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


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(IceFileError):
        read_ice(tmp_path / "none.toml")
