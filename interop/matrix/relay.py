"""A UDP relay that records what passes, and loses or repeats datagrams on request."""

import random
import selectors
import socket
import struct
import threading
import time
from pathlib import Path


class Capture:
    """Writes datagrams into a pcap file, with IPv4 and UDP headers made up around them."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.file = path.open("wb")
        # Link type 101: raw IP.
        self.file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        self.packets = 0

    def write(self, payload: bytes, source: int, destination: int) -> None:
        now = time.time()
        udp = struct.pack("!HHHH", source, destination, 8 + len(payload), 0)
        length = 28 + len(payload)
        address = socket.inet_aton("127.0.0.1")
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 17, 0, address, address)
        packet = ip + udp + payload
        self.file.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(packet), len(packet)))
        self.file.write(packet)
        self.packets += 1

    def close(self) -> None:
        self.file.close()


# Types of DTLS records: RFC 5246 section 6.2.1, RFC 9146 section 4.
HANDSHAKE, WITH_CID = 22, 25


class Relay:
    """Stands between clients and one server on the loopback interface.

    `mode` is "clean", "loss" (a tenth of the datagrams each way), "twice" (each one comes twice) or "moved" (clean, and the
    runner calls `move`).
    """

    def __init__(self, server_port: int, capture: Path) -> None:
        self.server = ("127.0.0.1", server_port)
        self.capture = Capture(capture)
        self.front = self.bound()
        self.port = self.front.getsockname()[1]
        self.mode = "clean"
        self.random = random.Random(0)
        self.to_client = 0
        # How many datagrams to the server began with a DTLS record of each type.
        self.records: dict[int, int] = {}
        self.behind: dict[tuple[str, int], socket.socket] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.front, selectors.EVENT_READ, None)
        self.running = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @staticmethod
    def bound() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("127.0.0.1", 0))
        made.setblocking(False)
        return made

    def set(self, mode: str, seed: str) -> None:
        self.random = random.Random(seed)
        self.mode = mode

    def move(self) -> None:
        """The server sees the clients at other addresses from now on."""
        moved, self.behind = self.behind, {}
        for behind in moved.values():
            self.selector.unregister(behind)
            behind.close()
        self.records = {}

    def copies(self) -> int:
        if self.mode == "loss":
            return 0 if self.random.random() < 0.1 else 1
        return 2 if self.mode == "twice" else 1

    def run(self) -> None:
        while self.running:
            for key, _ in self.selector.select(0.1):
                try:
                    payload, source = key.fileobj.recvfrom(65535)
                    self.forward(payload, source, key.data)
                except OSError:
                    continue  # a client or server that has ended

    def forward(self, payload: bytes, source: tuple[str, int], client: tuple[str, int] | None) -> None:
        if client is None:
            behind = self.behind.get(source)
            if behind is None:
                behind = self.behind[source] = self.bound()
                self.selector.register(behind, selectors.EVENT_READ, source)
            self.capture.write(payload, source[1], self.port)
            if payload:
                self.records[payload[0]] = self.records.get(payload[0], 0) + 1
            for _ in range(self.copies()):
                behind.sendto(payload, self.server)
        else:
            self.to_client += 1
            for _ in range(self.copies()):
                self.capture.write(payload, self.port, client[1])
                self.front.sendto(payload, client)

    def close(self) -> None:
        self.running = False
        self.thread.join(2)
        for each in [self.front, *self.behind.values()]:
            each.close()
        self.selector.close()
        self.capture.close()
