"""The other end of a data channel, written by hand over `RTCPeerConnection`: a program.

It reads a line with the offer, writes one with the answer, and does what its argument says. What
it learns it writes as lines.
"""

import asyncio  # noqa: TID251 - a program of its own, as it could be anybody's
import json
import sys

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription


def say(**what) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def heard(channel, mode: str, message) -> None:
    if isinstance(message, bytes):
        say(bytes=message[:3].hex())
    elif mode == "echo":
        channel.send(message)


def opened(connection, channel, mode: str) -> None:
    say(open=True)
    match mode:
        case "flood":
            for _ in range(128):
                channel.send("x" * 16_384)
        case "nonsense":
            channel.send(b"\x77nonsense")
        case "endless":
            for _ in range(20):
                channel.send(b"\x00" + b"x" * 16_383)
        case "second":
            connection.createDataChannel("another")


async def main(mode: str) -> None:
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    channel = connection.createDataChannel(
        "protofly", negotiated=True, id=0, ordered=True, protocol="protofly.v1"
    )

    channel.on("message", lambda message: heard(channel, mode, message))
    channel.on("open", lambda: opened(connection, channel, mode))
    channel.on("close", lambda: say(closed=True))
    line = await asyncio.to_thread(sys.stdin.readline)
    offer = RTCSessionDescription(json.loads(line)["sdp"], "offer")
    await connection.setRemoteDescription(offer)
    await connection.setLocalDescription(await connection.createAnswer())
    say(sdp=connection.localDescription.sdp)
    await asyncio.to_thread(sys.stdin.read)
    await connection.close()


asyncio.run(main(sys.argv[1]))
