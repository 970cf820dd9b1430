"""A device with its own IP stack at a TAP device: it resolves its router, and GETs coap://SERVER/test. Arguments: the TAP device's name,
its own address, its router's and the server's, all of IPv4 or all of IPv6."""

import fcntl
import ipaddress
import os
import select
import struct
import sys

NAME, *ADDRESSES = sys.argv[1:]
OWN, ROUTER, SERVER = (ipaddress.ip_address(text).packed for text in ADDRESSES)
MAC = b"\x02\x00\x00\x00\x00\x07"
GET_TEST = b"\x41\x01\x12\x34\x07\xb4test"  # Confirmable, token 07
IPV4, ARP, IPV6 = b"\x08\x00", b"\x08\x06", b"\x86\xdd"


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv6(to: bytes, protocol: int, hops: int, body: bytes, place: int) -> bytes:
    """A packet whose checksum is at this place of its body."""
    summed = OWN + to + struct.pack("!II", len(body), protocol) + body + b"\0" * (len(body) % 2)
    body = body[:place] + struct.pack("!H", checksum(summed) or 0xFFFF) + body[place + 2:]
    return struct.pack("!IHBB", 6 << 28, len(body), protocol, hops) + OWN + to + body


def advertisement(to: bytes) -> bytes:
    return ipv6(to, 58, 255, b"\x88\0\0\0\x60\0\0\0" + OWN + b"\x02\x01" + MAC, 2)


tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", NAME.encode(), 0x1002))  # TUNSETIFF: IFF_TAP, IFF_NO_PI


def send(to: bytes, kind: bytes, packet: bytes) -> None:
    os.write(tap, to + MAC + kind + packet)


udp = struct.pack("!HHHH", 5683, 5683, 8 + len(GET_TEST), 0) + GET_TEST
if len(OWN) == 4:
    question = b"\xff" * 6, ARP, b"\0\1\x08\0\6\4\0\1" + MAC + OWN + b"\0" * 6 + ROUTER
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + OWN + SERVER
    request, kind, to_udp = head[:10] + struct.pack("!H", checksum(head)) + head[12:] + udp, IPV4, 20
else:
    group = bytes.fromhex("ff0200000000000000000001ff") + ROUTER[13:]
    solicitation = ipv6(group, 58, 255, b"\x87" + b"\0" * 7 + ROUTER + b"\x01\x01" + MAC, 2)
    question = b"\x33\x33" + group[12:], IPV6, solicitation
    request, kind, to_udp = ipv6(SERVER, 17, 64, udp, 6), IPV6, 40
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
            send(source, kind, request)
    elif seen == IPV6 and packet[6] == 58 and packet[40] == 135 and packet[48:64] == OWN:
        send(source, IPV6, advertisement(packet[8:24]))
    elif seen == IPV6 and packet[6] == 58 and packet[40] == 136:
        send(source, kind, request)
    elif seen == kind and packet[to_udp:to_udp + 2] == b"\x16\x33":
        print(packet[to_udp + 8:].split(b"\xff", 1)[1].decode())
        break
