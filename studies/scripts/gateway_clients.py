#!/usr/bin/env python3
"""A request from each of many addresses of loopback to a gateway, and the gateway's memory: studies/gateways.md.

    gateway_clients.py PORT PID COUNT          each waits for its answer; all requests are equal
    gateway_clients.py PORT PID COUNT --leave  none waits; all requests differ

The gateway listens at 127.0.0.1:PORT, as the process PID; the requests are for its path /far/test.
"""

import collections
import pathlib
import re
import socket
import sys

port, pid, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
leave = "--leave" in sys.argv
# Sockets that are open at the same time.
BATCH = 250


def memory():
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) / 1024


def client(number):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((f"127.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}", 0))
    made.connect(("127.0.0.1", port))
    made.settimeout(10 if not leave else 0.01)
    # A Confirmable GET with the token 7, and with a query if it is to differ.
    query = bytes([0x40 + len(str(number))]) + str(number).encode() if leave else b""
    made.send(b"\x41\x01\x00\x01\x07\xb3far\x04test" + query)
    return made


def answer(made):
    """The code of the answer, which may follow an acknowledgement."""
    try:
        got = made.recv(2048)
        while got[1] == 0:
            got = made.recv(2048)
        if got[0] & 0x30 == 0:
            made.send(b"\x60\x00" + got[2:4])
        return f"{got[1] >> 5}.{got[1] & 31:02}"
    except TimeoutError:
        return "none"


codes = collections.Counter()
print(f"{memory():.1f} MB before")
for first in range(1, count + 1, BATCH):
    clients = [client(number) for number in range(first, min(first + BATCH, count + 1))]
    # Of those that leave, a few are asked.
    codes.update(answer(made) for made in (clients[:5] if leave else clients))
    for made in clients:
        made.close()
print(f"{memory():.1f} MB after {count} clients; answers: {dict(codes)}")
