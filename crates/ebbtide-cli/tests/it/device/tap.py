"""A device with its own IP stack at a TAP device: it resolves its router, and GETs coap://SERVER/test. Arguments: the TAP device's name,
its own address, its router's and the server's, all of IPv4 or all of IPv6."""

import fcntl
import ipaddress
import os
import select
import struct
import sys

from packets import answer, ipv6, request

NAME, *ADDRESSES = sys.argv[1:]
OWN, ROUTER, SERVER = (ipaddress.ip_address(text).packed for text in ADDRESSES)
MAC = b"\x02\x00\x00\x00\x00\x07"
IPV4, ARP, IPV6 = b"\x08\x00", b"\x08\x06", b"\x86\xdd"


def advertisement(to: bytes) -> bytes:
    return ipv6(OWN, to, 58, 255, b"\x88\0\0\0\x60\0\0\0" + OWN + b"\x02\x01" + MAC, 2)


tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", NAME.encode(), 0x1002))  # TUNSETIFF: IFF_TAP, IFF_NO_PI


def send(to: bytes, kind: bytes, packet: bytes) -> None:
    os.write(tap, to + MAC + kind + packet)


if len(OWN) == 4:
    question = b"\xff" * 6, ARP, b"\0\1\x08\0\6\4\0\1" + MAC + OWN + b"\0" * 6 + ROUTER
    kind = IPV4
else:
    group = bytes.fromhex("ff0200000000000000000001ff") + ROUTER[13:]
    solicitation = ipv6(OWN, group, 58, 255, b"\x87" + b"\0" * 7 + ROUTER + b"\x01\x01" + MAC, 2)
    question = b"\x33\x33" + group[12:], IPV6, solicitation
    kind = IPV6
while True:
    # The system takes a while to see that somebody has attached.
    while not select.select([tap], [], [], 0.5)[0]:
        send(*question)
    frame = os.read(tap, 2048)
    source, seen, packet = frame[6:12], frame[12:14], frame[14:]
    if seen == ARP and packet[24:28] == OWN:
        if packet[7] == 1:
            send(source, ARP, packet[:7] + b"\2" + MAC + OWN + packet[8:18])
        else:
            send(source, kind, request(OWN, SERVER))
    elif seen == IPV6 and packet[6] == 58 and packet[40] == 135 and packet[48:64] == OWN:
        send(source, IPV6, advertisement(packet[8:24]))
    elif seen == IPV6 and packet[6] == 58 and packet[40] == 136:
        send(source, kind, request(OWN, SERVER))
    elif seen == kind and (text := answer(packet)):
        print(text)
        break
