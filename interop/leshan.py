#!/usr/bin/env python3
"""Leshan's server against the device of examples/lwm2m, on one DTLS session through a lossy relay.

    interop/leshan.py [--seconds 60] [--loss 0.1] [--moves N] [--build]

The device registers; the server reads, observes, and brings 60,000 bytes of firmware by both ways, again and again,
compares the digests and installs them. The relay loses a share of the datagrams, and gives the device another port
N times, each in the middle of a push, which Leshan makes again. Needs Java 17, Maven, and `cargo build -p lwm2m -p ebbtide-cli`; `--build` builds all.
"""

from __future__ import annotations

import argparse
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")).resolve()
BUILT = TARGET / "interop/leshan"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Relay:
    """Between one client and a server: loses datagrams, and changes the client's port."""

    def __init__(self, server: int, loss: float) -> None:
        self.server, self.loss = ("127.0.0.1", server), loss
        self.random = random.Random(1)
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.port = self.front.getsockname()[1]
        self.back = self._opened()
        self.client: tuple[str, int] | None = None
        self.carried = self.lost = 0
        threading.Thread(target=self._run, daemon=True).start()

    @staticmethod
    def _opened() -> socket.socket:
        back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        back.bind(("127.0.0.1", 0))
        return back

    def move(self) -> None:
        """Change the port that the server sees. What it sends to the former one is lost."""
        self.back = self._opened()

    def _run(self) -> None:
        while True:
            back = self.back
            with selectors.DefaultSelector() as ready:
                for one in (self.front, back):
                    ready.register(one, selectors.EVENT_READ)
                readable = [key.fileobj for key, _ in ready.select(0.1)]
            for one in readable:
                datagram, sender = one.recvfrom(65536)  # type: ignore[union-attr]
                if one is self.front:
                    self.client = sender
                if self.random.random() < self.loss:
                    self.lost += 1
                elif one is self.front:
                    self.carried += 1
                    back.sendto(datagram, self.server)
                elif self.client is not None:
                    self.carried += 1
                    self.front.sendto(datagram, self.client)


def build() -> None:
    BUILT.mkdir(parents=True, exist_ok=True)
    maven = ["mvn", "-q", "-f", str(HERE / "leshan/pom.xml"), f"-DoutputDirectory={BUILT / 'lib'}"]
    subprocess.run([*maven, "dependency:copy-dependencies"], check=True)
    source = HERE / "leshan/src/main/java/LwM2mServer.java"
    subprocess.run(["javac", "-cp", f"{BUILT}/lib/*", "-d", BUILT, source], check=True)
    subprocess.run(["cargo", "build", "-p", "lwm2m", "-p", "ebbtide-cli"], check=True, cwd=HERE.parent)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--loss", type=float, default=0.1)
    parser.add_argument("--moves", type=int, default=0)
    parser.add_argument("--build", action="store_true")
    arguments = parser.parse_args()
    if arguments.build:
        build()
    if not (BUILT / "LwM2mServer.class").exists():
        print("skipped: interop/leshan.py --build has not been run")
        return 0
    # A signal ends the programs as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    programs: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "image.bin"
        image.write_bytes(random.Random(2).randbytes(60_000))
        lwm2m, files = free_port(), free_port()
        relay, downloads = Relay(lwm2m, arguments.loss), Relay(files, arguments.loss)
        try:
            serve = [TARGET / "debug/ebbtide", "serve", "--bind", f"127.0.0.1:{files}", "--dir", folder]
            programs.append(subprocess.Popen(serve, stdout=subprocess.DEVNULL))
            uri = f"coap://127.0.0.1:{downloads.port}/image.bin"
            java = ["java", "-cp", f"{BUILT}:{BUILT}/lib/*", "LwM2mServer"]
            words = [str(lwm2m), str(image), uri, str(arguments.seconds)]
            server = subprocess.Popen([*java, *words], stdout=subprocess.PIPE, text=True)
            programs.append(server)
            assert server.stdout is not None
            print(server.stdout.readline(), end="")
            address = f"coaps://127.0.0.1:{relay.port}"
            programs.append(subprocess.Popen([TARGET / "debug/lwm2m", "device", address, "dev-1", "secret"]))
            pause = arguments.seconds / (arguments.moves + 1)
            begun, moved = time.monotonic(), 0
            for line in server.stdout:
                if line != "pushing\n":
                    print(line, end="", flush=True)
                elif moved < arguments.moves and time.monotonic() - begun > pause * (moved + 1):
                    # In the middle of the transfer, when the device has nothing to send.
                    time.sleep(0.05)
                    relay.move()
                    moved += 1
                    print("the device has another port", flush=True)
            code = server.wait()
        finally:
            for program in programs:
                program.kill()
                program.wait()
    lost = relay.lost + downloads.lost
    print(f"{lost} of {lost + relay.carried + downloads.carried} datagrams were lost")
    return code


if __name__ == "__main__":
    sys.exit(main())
