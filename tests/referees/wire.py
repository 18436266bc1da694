"""Real calls, watched on the wire: each packet with the kernel's time stamp, by a socket that neither side knows of.

The observer reads the loopback device (AF_PACKET, SO_TIMESTAMPNS; it needs root), finds the ports of each call in the session
descriptions that pass, and places the samples of both directions (PCMU) at the times of their packets. Its clock starts at the answer
(200). The stretches of sound in it are found by librosa, as in recordings.
"""

import dataclasses
import pathlib
import re
import socket
import struct
import threading

import librosa
import numpy

import calls
import marks
from marks import AGENT, CALLER, RATE

HERE = pathlib.Path(__file__).parent
TIMESTAMPNS, ETH_IP, OUTGOING = 35, 0x0800, 4
PTIME, LINE_RATE = 160, 8000


@dataclasses.dataclass
class Packet:
    """A UDP packet: the kernel's time in seconds, its ports, what is in it."""

    at: float
    source: int
    target: int
    data: bytes


class Observer:
    """Keeps the UDP packets of the loopback device while it is open."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_IP))
        self.socket.bind(("lo", 0))
        self.socket.setsockopt(socket.SOL_SOCKET, TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
        self.packets, self.is_open = [], True
        self.thread = threading.Thread(target=self.read, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_open = False
        self.thread.join(timeout=10)
        dropped = struct.unpack("II", self.socket.getsockopt(263, 6, 8))[1]  # SOL_PACKET, PACKET_STATISTICS
        self.socket.close()
        if dropped:
            raise calls.Broken(f"the observer has lost {dropped} packets: its figures would be wrong")

    def read(self):
        self.socket.settimeout(0.2)
        while self.is_open:
            try:
                data, notes, _, origin = self.socket.recvmsg(65536, 128)
            except TimeoutError:
                continue
            # Each packet passes twice; the one that leaves is left out.
            if origin[2] == OUTGOING or data[9] != socket.IPPROTO_UDP:
                continue
            seconds, nanoseconds = next(struct.unpack("qq", note[2][:16]) for note in notes if note[1] == TIMESTAMPNS)
            head = 4 * (data[0] & 15)
            source, target = struct.unpack("!HH", data[head:head + 4])
            self.packets.append(Packet(seconds + nanoseconds / 1e9, source, target, data[head + 8:]))


@dataclasses.dataclass
class Watched:
    """A call as the wire has seen it. Times are seconds from the answer."""

    call_id: str
    duration: float
    setup: float
    """Seconds from the first INVITE to the answer."""
    spans: list
    sent_late: numpy.ndarray
    """How late each packet of the caller was, in seconds, against the earliest of its grid of 20 ms."""


def watched(packets, agent_port):
    """Returns the calls to a SIP port, by Call-ID. Calls that did not end, or have no sound of a side, are left out."""
    dialogs = {}
    for packet in packets:
        if agent_port not in (packet.source, packet.target):
            continue
        text = packet.data.decode("utf-8", "replace")
        name = re.search(r"^(?:Call-ID|i):\s*(\S+)", text, re.M | re.I)
        if not name:
            continue
        dialog = dialogs.setdefault(name[1], {})
        media = re.search(r"^m=audio (\d+)", text, re.M)
        if text.startswith("INVITE") and media:
            dialog.setdefault("caller", int(media[1]))
            dialog.setdefault("asked", packet.at)
        elif text.startswith("SIP/2.0 200") and "INVITE" in (re.search(r"^CSeq:.*$", text, re.M | re.I) or [""])[0] and media:
            dialog.setdefault("agent", int(media[1]))
            dialog.setdefault("start", packet.at)
        elif text.startswith("BYE"):
            dialog.setdefault("end", packet.at)
    return {
        name: watch(name, dialog, packets) for name, dialog in dialogs.items()
        if {"caller", "agent", "start", "end"} <= dialog.keys()
    }


def watch(name, dialog, packets):
    """Returns what passed between the two media ports of a call."""
    of_caller = [one for one in packets if (one.source, one.target) == (dialog["caller"], dialog["agent"])]
    of_agent = [one for one in packets if (one.source, one.target) == (dialog["agent"], dialog["caller"])]
    spans = []
    for side, stream in ((CALLER, of_caller), (AGENT, of_agent)):
        samples, start = line(stream)
        for span in marks.stretches(samples, side):
            at = start - dialog["start"]
            spans.append(marks.Span(side, span.start + at, span.end + at))
    spans += [marks.Span(CALLER, start - dialog["start"], end - dialog["start"]) for start, end in keys(of_caller)]
    return Watched(name, dialog["end"] - dialog["start"], dialog["start"] - dialog["asked"], spans, lateness(of_caller))


def keys(stream):
    """Returns the start and the end of each telephone event (RFC 4733), by the time of its first packet and its duration."""
    events = {}
    for one in stream:
        kind, stamp, payload = rtp(one)
        if kind >= 96 and len(payload) == 4:
            duration = struct.unpack("!H", payload[2:])[0] / LINE_RATE
            first, longest = events.get(stamp, (one.at, 0))
            events[stamp] = (first, max(longest, duration))
    return [(first, first + longest) for first, longest in events.values()]


def rtp(packet):
    """Returns (payload type, time stamp, payload) of an RTP packet (RFC 3550 5.1) without extensions."""
    first, second, _, stamp = struct.unpack("!BBHI", packet.data[:8])
    return second & 127, stamp, packet.data[12 + 4 * (first & 15):]


def line(stream):
    """Returns the samples of PCMU packets at 16 kHz, and the time of the first.

    A sample is placed by its time stamp, and all of them by the packet that came the least late. Sound is as old as its packet: the
    first sample of a packet is at the time at which the packet passes.
    """
    parts = [(one.at, *rtp(one)) for one in stream if len(one.data) > 12]
    parts = [(at, stamp, payload) for at, kind, stamp, payload in parts if kind == 0]
    if not parts:
        raise calls.Broken("a side has sent no PCMU")
    first = parts[0][1]
    offsets = [((stamp - first + (1 << 31)) % (1 << 32)) - (1 << 31) for _, stamp, _ in parts]
    start = min(at - offset / LINE_RATE for (at, _, _), offset in zip(parts, offsets))
    low = min(offsets)
    samples = numpy.zeros(max(offsets) - low + PTIME, dtype=numpy.float32)
    for (_, _, payload), offset in zip(parts, offsets):
        decoded = ULAW[numpy.frombuffer(payload, dtype=numpy.uint8)]
        samples[offset - low:offset - low + len(decoded)] = decoded
    return librosa.resample(samples, orig_sr=LINE_RATE, target_sr=RATE), start + low / LINE_RATE


def ulaw_table():
    """Returns the sample of each byte of PCMU (ITU-T G.711), from -1 to 1."""
    byte = ~numpy.arange(256, dtype=numpy.uint8)
    magnitude = (((byte & 15).astype(int) << 3) + 132 << ((byte >> 4) & 7)) - 132
    return (numpy.where(byte & 128, -magnitude, magnitude) / 32768).astype(numpy.float32)


ULAW = ulaw_table()


def lateness(stream):
    """Returns how late each packet was against a grid of its time stamps that the earliest one lies on, in seconds."""
    parts = [(one.at, *rtp(one)) for one in stream if len(one.data) > 12]
    parts = [(at, stamp) for at, kind, stamp, _ in parts if kind == 0]
    away = numpy.array([at - ((stamp - parts[0][1]) % (1 << 32)) / LINE_RATE for at, stamp in parts])
    return away - away.min()


def real_calls(ringer, folder, repeat, seed):
    """Makes the calls of calls.yaml in real time over PCMU; returns pairs of a call and what the wire has seen of it."""
    port = calls.free_port()
    suite = folder / "wire.yaml"
    suite.write_text((HERE / "calls.yaml").read_text().replace("127.0.0.1:5080", f"127.0.0.1:{port}"))
    agent = [ringer, "agent", "--listen", f"udp:127.0.0.1:{port}", "--codec", "PCMU"]
    with calls.running(agent, "agent ready"), Observer() as observer:
        calls.run(
            ringer, "run", suite, "--seed", seed, "--repeat", repeat, "--concurrency", 4, "--evidence", "--out", folder / "wire",
            may_end_with=(0, 1, 3),
        )
    seen = watched(observer.packets, port)
    both = []
    for call in calls.unpacked(folder / "wire"):
        signalling = (call.path.parent / "sip.log").read_text()
        names = [name for name in seen if name in signalling]
        if len(names) == 1:
            both.append((call, seen[names[0]]))
    if len(both) < repeat:
        raise calls.Broken(f"the wire has seen {len(both)} calls whole")
    return both
