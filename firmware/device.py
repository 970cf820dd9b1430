"""A device in QEMU, and the programs of the host that talk to it."""

import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from build import Image
from relay import Fate, SerialRelay

# Seconds after which a run has failed. The slowest exchange takes a minute.
LIMIT = 240
# How a server ends: with a goodbye, or like one whose power is cut.
End = Callable[["subprocess.Popen[str]"], None]
TERMINATED: End = subprocess.Popen.terminate
KILLED: End = subprocess.Popen.kill


class Failed(Exception):
    """A run did not go as it must."""


@dataclass(frozen=True)
class Host:
    """What a run needs of this machine."""

    ebbtide: Path
    seed: int
    loss: float

    def fate(self) -> Fate:
        return Fate(loss=self.loss, duplicates=0.1, reordered=0.1)


class Device:
    """A program in QEMU."""

    def __init__(self, image: Image, network: list[str], arguments: dict[str, object]) -> None:
        line = " ".join(f"{key}={value}" for key, value in arguments.items())
        command = [*image.board.emulator(), "-display", "none", "-monitor", "none", *network]
        command += ["-semihosting-config", f"enable=on,target=native,arg=firmware,arg={line}", "-kernel", str(image.path)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.output = ""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.output += line

    def wait_for(self, word: str) -> None:
        """Waits until the program has said this."""
        deadline = time.monotonic() + LIMIT
        while word not in self.output:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"the device did not say '{word}': {self.output}")
            time.sleep(0.01)

    def finish(self) -> dict[str, int]:
        """Waits for the end, and returns what the program reported."""
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise Failed(f"no end within {LIMIT} s: {self.output}") from None
        finally:
            self.stop()
        if code != 0:
            raise Failed(f"QEMU returned {code}: {self.output}")
        return {name: int(number) for name, number in re.findall(r"^(\w+) +(\d+)$", self.output, re.M)}

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()


@contextmanager
def on_serial_line(image: Image, fate: Fate, seed: int, arguments: dict[str, object]) -> Iterator[tuple[Device, SerialRelay]]:
    """A device whose datagrams pass a relay at the other end of its serial line."""
    relay = SerialRelay(fate, seed)
    network = ["-nic", "none", "-chardev", f"socket,id=line,host=127.0.0.1,port={relay.line}", "-serial", "chardev:line"]
    device = Device(image, network, arguments)
    try:
        yield device, relay
    finally:
        device.stop()
        relay.close()


@contextmanager
def on_ethernet(image: Image, arguments: dict[str, object]) -> Iterator[tuple[Device, int]]:
    """A device in QEMU's network, and the port of the host that leads to it."""
    free = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    network = ["-serial", "null", "-nic", f"user,model=stellaris,hostfwd=udp:127.0.0.1:{port}-10.0.2.15:5683"]
    device = Device(image, network, arguments)
    try:
        yield device, port
    finally:
        device.stop()


@contextmanager
def server(command: list[str], ready: str, end: End) -> Iterator[re.Match[str]]:
    """A server on the host. `ready` matches what it says when it can be asked."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout
        said = process.stdout.readline()
        match = re.search(ready, said)
        if not match:
            raise Failed(f"{command[0]} did not start: {said}")
        yield match
    finally:
        end(process)
        process.wait()
        assert process.stdout
        process.stdout.close()


@contextmanager
def ebbtide_server(host: Host, *options: str, port: int = 0, end: End = TERMINATED) -> Iterator[int]:
    """`ebbtide serve` at this port, or a free one."""
    bind = ["--bind", f"coaps://127.0.0.1:{port}" if "--psk-file" in options else f"127.0.0.1:{port}"]
    with server([str(host.ebbtide), "serve", *bind, *options], r"serving at coaps?://127\.0\.0\.1:(\d+)", end) as match:
        yield int(match[1])


@contextmanager
def libcoap_server() -> Iterator[int]:
    """libcoap's server, which says nothing when it is ready."""
    free = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    process = subprocess.Popen(["coap-server-notls", "-A", "127.0.0.1", "-p", str(port), "-e", "-d", "4"])
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


def call(command: list[str]) -> str:
    """What a program of the host writes; it must end well."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise Failed(f"no end within {LIMIT} s: {' '.join(command)}") from None
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout
