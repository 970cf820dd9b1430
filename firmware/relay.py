"""A path that loses, duplicates and reorders datagrams, by a seed: between sockets, or between a socket and a serial line."""

import random
import select
import socket
import threading
import time
from dataclasses import dataclass, field
from heapq import heappop, heappush

Address = tuple[str, int]

# By which a device knows this host, as in QEMU's network.
GATEWAY = "10.0.2.2"
END, ESC, ESC_END, ESC_ESC = b"\xc0", b"\xdb", b"\xdb\xdc", b"\xdb\xdd"


@dataclass
class Fate:
    """What happens to datagrams, as shares of them."""

    loss: float = 0.0
    duplicates: float = 0.0
    reordered: float = 0.0
    # Seconds that a duplicate or a datagram out of order is late.
    late: float = 0.02


@dataclass
class Count:
    """What passed, and what did not."""

    arrived: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0


@dataclass
class Direction:
    """One direction between two hosts. Its fates depend on the seed and on the order of its datagrams alone."""

    fate: Fate
    rng: random.Random
    count: Count = field(default_factory=Count)

    def delays(self) -> list[float]:
        """When the next datagram arrives: not at all, now, later, twice."""
        lost, duplicated, reordered = (self.rng.random() for _ in range(3))
        self.count.arrived += 1
        if lost < self.fate.loss:
            self.count.lost += 1
            return []
        delays = [0.0]
        if reordered < self.fate.reordered:
            self.count.reordered += 1
            delays = [self.fate.late]
        if duplicated < self.fate.duplicates:
            self.count.duplicated += 1
            delays.append(self.fate.late)
        return delays


class Relay:
    """Runs in a thread of its own until it is closed."""

    def __init__(self, fate: Fate, seed: int) -> None:
        self.fate, self.seed = fate, seed
        self.directions: dict[tuple[int, str], Direction] = {}
        self.waiting: list[tuple[float, int, socket.socket, bytes, Address | None]] = []
        self.number = 0
        self.closed = threading.Event()
        self.log: list[tuple[float, str, bytes]] = []
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def close(self) -> Count:
        """Ends it, and returns what passed in all."""
        self.closed.set()
        self.thread.join()
        total = Count()
        for direction in self.directions.values():
            for name, value in vars(direction.count).items():
                setattr(total, name, getattr(total, name) + value)
        return total

    def wait_for(self, datagrams: int) -> None:
        """Waits until so many have arrived here, unless it is closed."""
        while len(self.log) < datagrams and not self.closed.wait(0.02):
            pass

    def direction(self, host: int, way: str) -> Direction:
        """The direction from or to the host with this number. Hosts are numbered as they appear, whatever their ports."""
        key = host, way
        if key not in self.directions:
            self.directions[key] = Direction(self.fate, random.Random(f"{self.seed} {host} {way}"))
        return self.directions[key]

    def pass_on(self, host: int, way: str, out: socket.socket, data: bytes, to: Address | None) -> None:
        """Sends a datagram as its fate is; without an address, to the other end of a stream."""
        delays = self.direction(host, way).delays()
        self.log.append((time.monotonic(), way if delays else f"{way} lost", data))
        for delay in delays:
            self.number += 1
            heappush(self.waiting, (time.monotonic() + delay, self.number, out, data, to))
        self.send_due()

    def send_due(self) -> None:
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, _, out, data, to = heappop(self.waiting)
            if to is None:
                out.sendall(data)
            else:
                out.sendto(data, to)

    def wait(self, sockets: list[socket.socket]) -> list[socket.socket]:
        timeout = 0.2
        if self.waiting:
            timeout = min(timeout, max(0.0, self.waiting[0][0] - time.monotonic()))
        ready = select.select(sockets, [], [], timeout)[0]
        self.send_due()
        return ready

    def run(self) -> None:
        raise NotImplementedError


def udp() -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.bind(("127.0.0.1", 0))
    return opened


class UdpRelay(Relay):
    """Hosts send to `port`; each is forwarded to the target from a port of its own."""

    def __init__(self, target: Address, fate: Fate, seed: int) -> None:
        super().__init__(fate, seed)
        self.target, self.front = target, udp()
        self.port = self.front.getsockname()[1]
        self.hosts: dict[Address, socket.socket] = {}
        self.start()

    def run(self) -> None:
        while not self.closed.is_set():
            for ready in self.wait([self.front, *self.hosts.values()]):
                data, sender = ready.recvfrom(65535)
                if ready is self.front:
                    behind = self.hosts.setdefault(sender, udp()) if sender not in self.hosts else self.hosts[sender]
                    self.pass_on(list(self.hosts).index(sender), "up", behind, data, self.target)
                else:
                    number, host = next((n, h) for n, (h, s) in enumerate(self.hosts.items()) if s is ready)
                    self.pass_on(number, "down", self.front, data, host)


class SerialRelay(Relay):
    """A device at the other end of QEMU's serial line, which connects to `line`; hosts reach it at `port`."""

    def __init__(self, fate: Fate, seed: int) -> None:
        super().__init__(fate, seed)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.line = self.listening.getsockname()[1]
        self.front = udp()
        self.port = self.front.getsockname()[1]
        self.hosts: list[Address] = []
        self.start()

    def host(self, address: Address) -> int:
        if address not in self.hosts:
            self.hosts.append(address)
        return self.hosts.index(address)

    def run(self) -> None:
        self.listening.settimeout(20)
        try:
            line, _ = self.listening.accept()
        except TimeoutError:
            return
        partial = b""
        while not self.closed.is_set():
            for ready in self.wait([line, self.front]):
                if ready is self.front:
                    data, sender = ready.recvfrom(65535)
                    self.pass_on(self.host(sender), "to device", line, stuffed(sender, data), None)
                    continue
                try:
                    received = line.recv(65536)
                except ConnectionResetError:
                    return
                if not received:
                    return
                *frames, partial = (partial + received).split(END)
                for frame in filter(None, frames):
                    to, data = unstuffed(frame)
                    self.pass_on(self.host(to), "from device", self.front, data, to)


def stuffed(sender: Address, data: bytes) -> bytes:
    """A frame of RFC 1055 with a datagram and its sender's address; all are on this host."""
    whole = socket.inet_aton(GATEWAY) + sender[1].to_bytes(2, "big") + data
    return END + whole.replace(ESC, ESC_ESC).replace(END, ESC_END) + END


def unstuffed(frame: bytes) -> tuple[Address, bytes]:
    """The remote's address and the datagram in a frame."""
    whole = frame.replace(ESC_END, END).replace(ESC_ESC, ESC)
    return ("127.0.0.1", int.from_bytes(whole[4:6], "big")), whole[6:]
