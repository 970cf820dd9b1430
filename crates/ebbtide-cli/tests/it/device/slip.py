"""A device at the serial line $EBBTIDE_SLIP, which speaks SLIP (RFC 1055): it GETs coap://SERVER/test. Arguments: its own address and the
server's."""

import ipaddress
import os
import sys

from packets import answer, request

END, ESC = b"\xc0", b"\xdb"
own, server = (ipaddress.ip_address(text).packed for text in sys.argv[1:])
line = os.open(os.environ["EBBTIDE_SLIP"], os.O_RDWR | os.O_NOCTTY)
escaped = request(own, server).replace(ESC, ESC + b"\xdd").replace(END, ESC + b"\xdc")
# Noise, which the first END makes a frame of its own.
os.write(line, b"\r\n" + END + escaped + END)
seen = b""
while True:
    seen += os.read(line, 4096)
    *frames, seen = seen.split(END)
    for frame in frames:
        packet = frame.replace(ESC + b"\xdc", END).replace(ESC + b"\xdd", ESC)
        if packet and (text := answer(packet)):
            print(text)
            sys.exit()
