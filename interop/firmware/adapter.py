#!/usr/bin/env python3
"""The firmware's server in QEMU as an adapter of the matrix: datagrams at INTEROP_HOST and INTEROP_PORT pass a serial line.

    interop/firmware/adapter.py IMAGE
"""

import os
import select
import socket
import subprocess
import sys
import threading

UNSUPPORTED = 127
END, ESC, ESC_END, ESC_ESC = b"\xc0", b"\xdb", b"\xdb\xdc", b"\xdb\xdd"


def frame(number: int, datagram: bytes) -> bytes:
    """A frame of RFC 1055 with a datagram from the host with this number, which is its port on the serial line."""
    whole = socket.inet_aton("10.0.2.2") + number.to_bytes(2, "big") + datagram
    return END + whole.replace(ESC, ESC_ESC).replace(END, ESC_END) + END


def pass_on(front: socket.socket, line: socket.socket) -> None:
    """Passes datagrams between the socket and the serial line until the device ends."""
    hosts: list[tuple] = []
    partial = b""
    while True:
        for ready in select.select([front, line], [], [])[0]:
            if ready is front:
                datagram, host = front.recvfrom(65535)
                if host not in hosts:
                    hosts.append(host)
                line.sendall(frame(1 + hosts.index(host), datagram))
                continue
            received = line.recv(65536)
            if not received:
                return
            *frames, partial = (partial + received).split(END)
            for text in filter(None, frames):
                whole = text.replace(ESC_END, END).replace(ESC_ESC, ESC)
                front.sendto(whole[6:], hosts[int.from_bytes(whole[4:6], "big") - 1])


def main(image: str) -> int:
    if (os.environ["INTEROP_ROLE"], os.environ["INTEROP_SCHEME"]) != ("server", "coap"):
        return UNSUPPORTED
    host, port = os.environ["INTEROP_HOST"], int(os.environ["INTEROP_PORT"])
    front = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    front.bind((host, port))
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(10)
    chardev = f"socket,id=line,host=127.0.0.1,port={listening.getsockname()[1]}"
    device = subprocess.Popen(
        ["qemu-system-arm", "-M", "lm3s6965evb", "-display", "none", "-monitor", "none", "-nic", "none",
         "-chardev", chardev, "-serial", "chardev:line", "-semihosting-config", "enable=on,target=native,arg=firmware,arg=retransmit=8",
         "-kernel", image],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        line, _ = listening.accept()
        assert device.stdout
        if not any("serving" in said for said in device.stdout):
            return 1
        print("ready", flush=True)
        # It must not wait for a reader of what it says later.
        threading.Thread(target=device.stdout.read, daemon=True).start()
        pass_on(front, line)
        return device.wait()
    finally:
        device.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
