"""Session descriptions and candidates of ICE, as peers write them (F2)."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specs.bodies.sdp import (
    Description,
    IceAddress,
    read_description,
    read_ice,
    write_description,
)
from specs.errors import BadMessageError
from specs.limits.webrtc import MAX_ICE_CANDIDATE, MAX_ICE_CANDIDATES, MAX_SDP

FINGERPRINT = "sha-256 " + ":".join(["4A"] * 32)
OURS = Description("abcd", "0123456789012345678901", FINGERPRINT, 5000, 262_144)

CHROMIUM = (
    "v=0\r\no=- 5021343 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n"
    "a=extmap-allow-mixed\r\na=msid-semantic: WMS\r\n"
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n"
    "a=candidate:1 1 udp 2113937151 4f9d.local 54321 typ host generation 0\r\n"
    "a=ice-ufrag:Wb1+\r\na=ice-pwd:Nf/8p3o4dHfGQ0QxHe0fO9q2\r\na=ice-options:trickle\r\n"
    "a=fingerprint:sha-256 " + ":".join(["ab"] * 32) + "\r\na=setup:actpass\r\na=mid:0\r\n"
    "a=sctp-port:5000\r\na=max-message-size:262144\r\n"
)
LINES = CHROMIUM.removesuffix("\r\n").split("\r\n")


@pytest.mark.parametrize("kind", ["offer", "answer"])
def test_what_is_written_is_read_again(kind):
    assert read_description(write_description(OURS, kind), kind) == OURS


def test_an_answer_is_no_offer():
    with pytest.raises(BadMessageError):
        read_description(write_description(OURS, "answer"), "offer")


def test_the_description_of_a_browser_is_read():
    read = read_description(CHROMIUM, "offer")

    assert (read.user, read.password) == ("Wb1+", "Nf/8p3o4dHfGQ0QxHe0fO9q2")
    assert read.fingerprint == "sha-256 " + ":".join(["AB"] * 32)
    assert read.candidates == (
        "candidate:1 1 udp 2113937151 4f9d.local 54321 typ host generation 0",
    )


def without(name: str) -> str:
    return "\r\n".join(line for line in LINES if not line.startswith(name)) + "\r\n"


BAD = {
    "empty": "",
    "no line": "v=0\r\nnonsense\r\n",
    "line feeds only": CHROMIUM.replace("\r\n", "\n"),
    "too long": CHROMIUM + "a=x\r\n" * MAX_SDP,
    "no media": without("m="),
    "two channels": CHROMIUM + CHROMIUM,
    "a camera": CHROMIUM.replace("application 9 UDP/DTLS/SCTP webrtc-datachannel", "video 9 X 1"),
    "no fingerprint": without("a=fingerprint"),
    "two fingerprints": CHROMIUM + f"a=fingerprint:{FINGERPRINT}\r\n",
    "a weak fingerprint": CHROMIUM.replace("sha-256", "sha-1"),
    "a short fingerprint": CHROMIUM.replace("ab:ab:", "", 1),
    "no user": without("a=ice-ufrag"),
    "two passwords": CHROMIUM + "a=ice-pwd:0123456789012345678901\r\n",
    "a short password": CHROMIUM.replace("Nf/8p3o4dHfGQ0QxHe0fO9q2", "short"),
    "no role": without("a=setup"),
    "a wrong role": CHROMIUM.replace("actpass", "active"),
    "no number": CHROMIUM.replace("sctp-port:5000", "sctp-port:x"),
    "a large number": CHROMIUM.replace("sctp-port:5000", "sctp-port:70000"),
    "a foreign digit": CHROMIUM.replace("sctp-port:5000", "sctp-port:\u0665\u0660"),
    "many candidates": CHROMIUM + "a=candidate:1 1 udp 1 h 1 typ host\r\n" * MAX_ICE_CANDIDATES,
}


@pytest.mark.parametrize("sdp", BAD.values(), ids=BAD)
def test_a_description_that_is_none_of_a_data_channel_is_refused(sdp):
    with pytest.raises(BadMessageError):
        read_description(sdp, "offer")


def test_a_candidate_says_where_it_leads():
    text = "candidate:842163049 1 UDP 1677729535 203.0.113.9 40678 typ srflx raddr 0.0.0.0 rport 0"

    assert read_ice(text) == IceAddress("203.0.113.9", 40_678, "udp", "srflx")
    assert read_ice("") is None


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "candidate:1 2 udp 1 203.0.113.9 1 typ host",
        "candidate:1 1 udp 1 203.0.113.9 0 typ host",
        "candidate:1 1 udp 1 203.0.113.9 65536 typ host",
        "candidate:1 1 sctp 1 203.0.113.9 1 typ host",
        "candidate:1 1 udp 1 203.0.113.9 1 typ guest",
        "candidate:1 1 udp 1 203.0.113.9 1\r\na=x typ host",
        "candidate:1 1 udp 1 203.0.113.9 1 typ host " + "x" * MAX_ICE_CANDIDATE,
    ],
)
def test_a_malformed_candidate_is_refused(text):
    with pytest.raises(BadMessageError):
        read_ice(text)


@given(st.lists(st.sampled_from([*LINES, "a=", "m=", "=", "a=candidate:", "\0", "a=mid"])))
def test_any_text_is_read_or_refused(lines):
    with suppress(BadMessageError):
        read_description("\r\n".join(lines), "offer")


@given(st.text(max_size=80) | st.from_regex(r"candidate:.{0,60}", fullmatch=True))
def test_any_candidate_is_read_or_refused(text):
    with suppress(BadMessageError):
        read_ice(text)
