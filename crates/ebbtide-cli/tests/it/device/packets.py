"""Packets of a device with its own IP stack: a request to coap://SERVER/test, and what answers it. Addresses are packed, all of
IPv4 or all of IPv6."""

import struct

# Confirmable. The token has the bytes that SLIP escapes (RFC 1055).
GET_TEST = b"\x44\x01\x12\x34\xc0\xdb\xdc\xdd\xb4test"


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv6(own: bytes, to: bytes, protocol: int, hops: int, body: bytes, place: int) -> bytes:
    """A packet whose checksum is at this place of its body."""
    summed = own + to + struct.pack("!II", len(body), protocol) + body + b"\0" * (len(body) % 2)
    body = body[:place] + struct.pack("!H", checksum(summed) or 0xFFFF) + body[place + 2:]
    return struct.pack("!IHBB", 6 << 28, len(body), protocol, hops) + own + to + body


def request(own: bytes, server: bytes) -> bytes:
    udp = struct.pack("!HHHH", 5683, 5683, 8 + len(GET_TEST), 0) + GET_TEST
    if len(own) == 16:
        return ipv6(own, server, 17, 64, udp, 6)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + own + server
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + udp


def answer(packet: bytes) -> str | None:
    """The payload of the server's answer; nothing for other packets."""
    at = 20 if packet[0] >> 4 == 4 else 40
    return packet[at + 8:].split(b"\xff", 1)[1].decode() if packet[at:at + 2] == b"\x16\x33" else None
