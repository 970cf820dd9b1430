"""The least adapter of the matrix: it asks for /test with GET, and serves it. All else it calls unsupported."""

import os
import socket
import struct
import sys

CONFIRMABLE, ACKNOWLEDGEMENT = 0, 2
GET, CONTENT, NOT_FOUND = 0x01, 0x45, 0x84
TEST = b"0123456789" * 6


def options(data: bytes) -> tuple[list[bytes], bytes]:
    """The values of Uri-Path, and the payload (RFC 7252 section 3.1, short options only)."""
    path, number, at = [], 0, 0
    while at < len(data) and data[at] != 0xFF:
        number, length = number + (data[at] >> 4), data[at] & 15
        if number == 11:
            path.append(data[at + 1:at + 1 + length])
        at += 1 + length
    return path, data[at + 1:]


def serve(link: socket.socket) -> None:
    link.bind((os.environ["INTEROP_HOST"], int(os.environ["INTEROP_PORT"])))
    print("ready", flush=True)
    while True:
        data, client = link.recvfrom(2048)
        if len(data) < 4 or data[0] >> 4 != 4:
            continue  # another version, or not Confirmable
        token = data[4:4 + (data[0] & 15)]
        path, _ = options(data[4 + len(token):])
        code, payload = (CONTENT, b"\xff" + TEST) if (data[1], path) == (GET, [b"test"]) else (NOT_FOUND, b"")
        link.sendto(struct.pack("!BBxx", 0x60 | len(token), code)[:2] + data[2:4] + token + payload, client)


def ask(link: socket.socket) -> None:
    link.connect((os.environ["INTEROP_HOST"], int(os.environ["INTEROP_PORT"])))
    link.settimeout(1.0)
    print("ready", flush=True)
    for message_id, request in enumerate(sys.stdin):
        if request.split() != ["GET", "/test"]:
            print("unsupported only GET /test\n.", flush=True)
            continue
        message = struct.pack("!BBH", 0x41, GET, message_id) + b"\x01" + b"\xb4test"
        try:
            link.send(message)
            data = link.recv(2048)
            _, payload = options(data[4 + (data[0] & 15):])
            print(f"{data[1] >> 5}.{data[1] & 31:02} - {payload.hex() or '-'}\n.", flush=True)
        except OSError as error:
            print(f"error {error}\n.", flush=True)


if __name__ == "__main__":
    if os.environ["INTEROP_SCHEME"] != "coap":
        sys.exit(127)
    family = socket.AF_INET6 if ":" in os.environ["INTEROP_HOST"] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as link:
        serve(link) if os.environ["INTEROP_ROLE"] == "server" else ask(link)
