"""Data channels to a real browser, whose end is written by hand over `RTCPeerConnection`.

The page does what docs/p2p.md says, and nothing else.
"""

import pytest
import trio

from specs.bodies.sdp import read_description
from specs.limits.protocol import MAX_FRAME_BYTES
from tests.support.browser import needs_chromium, needs_firefox
from tests.support.runtime.channels import CERTIFICATE, open_shared_network
from transports.errors import LinkBrokenError
from transports.link import ChannelTerms
from transports.webrtc.process import is_webrtc_installed

pytestmark = pytest.mark.skipif(
    not is_webrtc_installed(), reason="the extra 'webrtc' is not installed"
)

EVERYWHERE = "0.0.0.0"  # noqa: S104 - a browser has no sockets at the loopback address

END = """
async () => {
  const certificate = await RTCPeerConnection.generateCertificate(
    {name: "ECDSA", namedCurve: "P-256"});
  const pc = window.pc = new RTCPeerConnection({certificates: [certificate]});
  const channel = window.channel = pc.createDataChannel(
    "protofly", {negotiated: true, id: 0, ordered: true, protocol: "protofly.v1"});
  channel.binaryType = "arraybuffer";
  window.print = certificate.getFingerprints ? certificate.getFingerprints()[0] : null;
  window.frames = [];
  window.ended = null;
  let parts = [], taken = 0, granted = 0;
  const take = (frame, size) => {
    window.frames.push(frame.length > 40 ? frame.length : frame);
    taken += size;
    if (taken - granted >= 131072) {
      granted = taken;
      const credit = new DataView(new ArrayBuffer(5));
      credit.setUint8(0, 2);
      credit.setUint32(1, taken >>> 0);
      channel.send(credit.buffer);
    }
  };
  channel.onmessage = ({data}) => {
    if (typeof data === "string") return take(data, new TextEncoder().encode(data).length);
    const bytes = new Uint8Array(data);
    if (bytes[0] === 3) { window.ended = bytes[1] * 256 + bytes[2]; channel.send(data); return; }
    if (bytes[0] > 1) return;
    parts.push(bytes);
    if (bytes[0] === 0) return;
    const size = parts.reduce((sum, one) => sum + one.length, 0);
    const whole = new Uint8Array(size - parts.length);
    let at = 0;
    for (const one of parts) { whole.set(one.subarray(1), at); at += one.length - 1; }
    parts = [];
    take(new TextDecoder().decode(whole), size);
  };
  window.found = [];
  window.gathered = new Promise((done) => {
    pc.onicecandidate = ({candidate}) => {
      if (candidate === null) done(window.found); else window.found.push(candidate.toJSON());
    };
  });
}
"""
OFFER = """
async () => {
  const offer = await pc.createOffer();
  await pc.setLocalDescription(offer);
  return {type: offer.type, sdp: offer.sdp};
}
"""
ANSWER = """
async (offer) => {
  await pc.setRemoteDescription(offer);
  const answer = await pc.createAnswer();
  await pc.setLocalDescription(answer);
  return {type: answer.type, sdp: answer.sdp};
}
"""
DESCRIBED = "async (description) => { await pc.setRemoteDescription(description); }"
HEAR = "async (candidate) => { await pc.addIceCandidate(candidate); }"
SEND = """
(size) => {
  channel.send("a small one");
  const bytes = new TextEncoder().encode("y".repeat(size));
  for (let at = 0; at < size; at += 16383) {
    const piece = bytes.subarray(at, at + 16383);
    const part = new Uint8Array(piece.length + 1);
    part[0] = at + 16383 < size ? 0 : 1;
    part.set(piece, 1);
    channel.send(part);
  }
}
"""
LEAVE = "() => { channel.send(new Uint8Array([3, 3, 233])); }"


async def converse(page, link):
    """Send frames of all sizes in both directions, more than a window of them."""
    sizes = [1_000, MAX_FRAME_BYTES, 200_000, MAX_FRAME_BYTES, 5]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(link.send_many, [b"x" * size for size in sizes])
        await page.until("() => frames.length === 5")
    assert await page.evaluate("() => frames") == [*sizes[:-1], "xxxxx"]
    await page.evaluate(SEND, 200_000)
    assert await link.receive() == b"a small one"
    assert await link.receive() == b"y" * 200_000


async def trickle(page, end):
    async for candidate in end.candidates:
        # This page has no use for the end of candidates; Firefox takes it as `null` only.
        if candidate:
            said = {"candidate": candidate, "sdpMid": "0", "sdpMLineIndex": 0}
            await page.evaluate(HEAR, said)


async def hear_page(page, end):
    for one in await page.evaluate("() => gathered"):
        assert one.keys() >= {"candidate", "sdpMid", "sdpMLineIndex"}
        if ".local" not in one["candidate"]:
            await end.hear(one["candidate"])


async def page_offers(page, network):
    """The browser is the requester: it offers, and leaves in the end."""
    await page.evaluate(END)
    offer = await page.evaluate(OFFER)
    assert offer["type"] == "offer"
    async with network.negotiate(ChannelTerms(CERTIFICATE, EVERYWHERE, offer["sdp"])) as end:
        await page.evaluate(DESCRIBED, {"type": "answer", "sdp": end.sdp})
        # Its last candidate is known before it can have sent a check.
        await hear_page(page, end)
        await trickle(page, end)
        with trio.fail_after(20):
            link = await end.opened()
        await converse(page, link)
        await page.evaluate(LEAVE)
        with pytest.raises(LinkBrokenError) as caught:
            await link.receive()
        assert caught.value.close_reason.value == 1001
        await link.aclose()


async def page_answers(page, network):
    """The browser is the handler: it answers, and learns why the other end leaves."""
    await page.evaluate(END)
    async with network.negotiate(ChannelTerms(CERTIFICATE, EVERYWHERE)) as end:
        answer = await page.evaluate(ANSWER, {"type": "offer", "sdp": end.sdp})
        described = read_description(answer["sdp"], "answer")
        shown = await page.evaluate("() => print")
        if shown is not None:  # Firefox does not tell
            assert described.fingerprint == f"sha-256 {shown['value'].upper()}"
        await end.answered(answer["sdp"])
        await trickle(page, end)
        await hear_page(page, end)
        with trio.fail_after(20):
            link = await end.opened()
        await converse(page, link)
        await link.aclose()
        assert await page.until("() => ended") == 1000


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("chromium", marks=needs_chromium),
        pytest.param("firefox", marks=needs_firefox),
    ],
)
@pytest.mark.timeout(240)
async def test_a_browser_is_the_other_end_of_a_data_channel(browsers, name):
    async with browsers.open(name) as browser, open_shared_network() as network:
        page = await browser.new_page()
        await page_offers(page, network)
        await page_answers(page, network)
