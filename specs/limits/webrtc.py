"""Limits of WebRTC data channels, each with unit and source."""

from typing import Final

from specs.limits import protocol as limits

MAX_SDP: Final = 8192
"""Characters of a session description: one of a data channel has about 700 (ours)."""

MAX_ICE_CANDIDATES: Final = 32
"""ICE candidates of one end in one negotiation (ours): a browser with two network interfaces and
two TURN servers has about 20."""

MAX_ICE_CANDIDATE: Final = 512
"""Characters of an ICE candidate (ours)."""

CHANNEL_MESSAGE: Final = 16_384
"""Bytes of one message of a data channel: what all browsers take (RFC 8831 section 6.6)."""

CHANNEL_WINDOW: Final = 524_288
"""Bytes sent on a data channel that the receiver has not read yet: two frames (ours)."""

CHANNEL_FRAMES: Final = 8192
"""Frames sent on a data channel that the receiver has not read yet: as many frames of 64 bytes,
less than any message has, fill the window (ours)."""

CHANNEL_CREDIT: Final = 131_072
"""Bytes that are read before the sender gets an acknowledgement: a quarter of the window (ours)."""

CHANNEL_BUFFER: Final = 262_144
"""Bytes that wait in the stack of WebRTC to be sent: one frame (ours)."""

CHANNEL_BUFFER_LOW: Final = 65_536
"""Bytes that are left waiting in the stack of WebRTC when more are added (ours)."""

ICE_SERVER_TIMEOUT: Final = 2
"""Seconds that a STUN or TURN server has for its answer: a fifth of a link's set-up (ours)."""

ICE_DATAGRAMS: Final = 4096
"""Datagrams that wait to be decrypted: more than a window of the data channel needs (ours)."""

ICE_INQUIRY: Final = 2.0
"""Seconds that the broker of network resources has for its answer (ours)."""

WEBRTC_MEMORY: Final = 1_073_741_824
"""Bytes of address space of the process of WebRTC: six times what it has with one link (ours)."""

WEBRTC_PEERS: Final = 256
"""WebRTC connections of one runtime, those being set up included (ours: as many as HANDLED_LINKS;
each takes 0.2 MB and three file descriptors or more)."""

WEBRTC_FILES: Final = 4096
"""File descriptors of the process of WebRTC, where the system allows as many (ours)."""

CHANNEL_TIMEOUT: Final = limits.DIAL_TIMEOUT + limits.HANDSHAKE_TIMEOUT
"""Seconds in which a data channel must open once its answer is known (ours: as for other links)."""

WEBRTC_START: Final = 5.0
"""Seconds in which the process of WebRTC must have begun a connection: half of a link's set-up
(ours)."""
