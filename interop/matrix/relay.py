"""A UDP relay that records what passes, and is a bad path on request."""

import enum
import heapq
import random
import selectors
import socket
import struct
import threading
import time
from pathlib import Path
from typing import NamedTuple


class Move(enum.Enum):
    """When the server sees the clients at other addresses, as after a NAT's rebinding."""

    NEVER = "never"
    BETWEEN_REQUESTS = "between requests"
    MIDWAY = "midway"


class Conditions(NamedTuple):
    """What the relay does to each datagram."""

    loss: float = 0.0  # share that is lost, each way
    copies: int = 1
    delay: float = 0.0  # s, each way
    jitter: float = 0.0  # s at most, added to the delay and drawn for each datagram, which reorders them
    mtu: int | None = None  # bytes of the largest IPv4 packet that passes
    move: Move = Move.NEVER


CONDITIONS = {
    "clean": Conditions(),
    "loss": Conditions(loss=0.1),
    "twice": Conditions(copies=2),
    "delay": Conditions(delay=0.75),
    "reordering": Conditions(jitter=0.6),
    "mtu": Conditions(mtu=1280),
    "moved": Conditions(move=Move.BETWEEN_REQUESTS),
    "moved midway": Conditions(move=Move.MIDWAY),
}
MIDWAY = 4  # datagrams to the server
HEADERS = 28  # bytes of IPv4 and UDP

class Capture:
    """Writes datagrams into a pcap file, with headers of IP and UDP made up around them."""

    def __init__(self, path: Path, host: str) -> None:
        self.host = host
        self.name = path.name
        self.file = path.open("wb")
        # Link type 101: raw IP.
        self.file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        self.packets = 0

    def write(self, payload: bytes, source: int, destination: int) -> None:
        now = time.time()
        udp = struct.pack("!HHHH", source, destination, 8 + len(payload), 0)
        if ":" in self.host:
            address = socket.inet_pton(socket.AF_INET6, self.host)
            ip = struct.pack("!IHBB16s16s", 6 << 28, 8 + len(payload), 17, 64, address, address)
        else:
            address = socket.inet_aton(self.host)
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, HEADERS + len(payload), 0, 0, 64, 17, 0, address, address)
        packet = ip + udp + payload
        self.file.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(packet), len(packet)))
        self.file.write(packet)
        self.packets += 1

    def close(self) -> None:
        self.file.close()


# Types of DTLS records: RFC 5246 section 6.2.1, RFC 9146 section 4.
HANDSHAKE, WITH_CID = 22, 25
DTLS13 = range(32, 64)  # first bytes of protected records of DTLS 1.3: RFC 9147 section 4


class StreamRelay:
    """Stands between clients and one server over TCP, and counts what the clients send."""

    def __init__(self, host: str, server_port: int) -> None:
        self.server = (host, server_port)
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        self.from_clients = 0  # bytes
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.server)
            except OSError:
                client.close()
                continue
            threading.Thread(target=self.pump, args=(client, server, 1), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, 0), daemon=True).start()

    def pump(self, source: socket.socket, sink: socket.socket, weight: int) -> None:
        """The threads of both directions hold the sockets, which close with the last one."""
        try:
            while data := source.recv(65536):
                self.from_clients += weight * len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            for each in (source, sink):
                each.close()

    def close(self) -> None:
        # Without it, the thread waits on.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Relay:
    """Stands between clients and one server on the loopback interface, under one of CONDITIONS."""

    def __init__(self, host: str, server_port: int, capture: Path) -> None:
        self.server = (host, server_port)
        self.capture = Capture(capture, host)
        self.front = self.bound()
        self.port = self.front.getsockname()[1]
        self.conditions = Conditions()
        self.random = random.Random(0)
        self.to_client = self.to_server = 0
        # How many datagrams to the server began with a DTLS record of each type.
        self.records: dict[int, int] = {}
        self.behind: dict[tuple[str, int], socket.socket] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.front, selectors.EVENT_READ, None)
        # Instant, order, payload, and the client it is from or for.
        self.waiting: list[tuple[float, int, bytes, tuple[str, int], bool]] = []
        self.order = 0
        self.lock = threading.Lock()
        self.running = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def bound(self) -> socket.socket:
        host, _ = self.server
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((host, 0))
        made.setblocking(False)
        return made

    def set(self, mode: str, seed: str) -> None:
        with self.lock:
            self.random = random.Random(seed)
            self.conditions = CONDITIONS[mode]
            self.to_server = 0

    def move(self) -> None:
        """The server sees the clients at other addresses from now on."""
        with self.lock:
            self.moved()

    def moved(self) -> None:
        old, self.behind = self.behind, {}
        for behind in old.values():
            self.selector.unregister(behind)
            behind.close()
        self.records = {}

    def run(self) -> None:
        while self.running:
            wait = min(0.1, self.waiting[0][0] - time.monotonic()) if self.waiting else 0.1
            for key, _ in self.selector.select(max(0.0, wait)):
                try:
                    payload, source = key.fileobj.recvfrom(65535)
                except (OSError, ValueError):
                    continue  # a client or server that has ended, or a socket of another address
                with self.lock:
                    self.take(payload, key.data or source, key.data is None)
            with self.lock:
                while self.waiting and self.waiting[0][0] <= time.monotonic():
                    _, _, payload, client, is_request = heapq.heappop(self.waiting)
                    self.deliver(payload, client, is_request)

    def take(self, payload: bytes, client: tuple[str, int], from_client: bool) -> None:
        """Decides on the fate of a datagram."""
        if from_client:
            self.capture.write(payload, client[1], self.port)
            if payload:
                self.records[payload[0]] = self.records.get(payload[0], 0) + 1
        conditions = self.conditions
        too_long = conditions.mtu is not None and HEADERS + len(payload) > conditions.mtu
        if too_long or self.random.random() < conditions.loss:
            return
        for _ in range(conditions.copies):
            self.order += 1
            at = time.monotonic() + conditions.delay + self.random.random() * conditions.jitter
            heapq.heappush(self.waiting, (at, self.order, payload, client, from_client))

    def deliver(self, payload: bytes, client: tuple[str, int], from_client: bool) -> None:
        try:
            if from_client:
                self.to_server += 1
                if self.conditions.move is Move.MIDWAY and self.to_server == MIDWAY:
                    self.moved()
                if client not in self.behind:
                    self.behind[client] = self.bound()
                    self.selector.register(self.behind[client], selectors.EVENT_READ, client)
                self.behind[client].sendto(payload, self.server)
            else:
                self.to_client += 1
                self.capture.write(payload, self.port, client[1])
                self.front.sendto(payload, client)
        except OSError:
            pass  # one that has ended

    def close(self) -> None:
        self.running = False
        self.thread.join(2)
        for each in [self.front, *self.behind.values()]:
            each.close()
        self.selector.close()
        self.capture.close()
