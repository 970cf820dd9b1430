"""Datagrams that no library sends, and what a server must make of them."""

import os
import random
import socket
import struct
from typing import Callable, NamedTuple

CON, NON, ACK, RST = range(4)
GET, POST, PUT = 1, 2, 3
URI_PATH, BLOCK2, BLOCK1, Q_BLOCK2 = 11, 23, 27, 31


class NotSupported(Exception):
    """A server without an extension that no server has to have."""


class Message(NamedTuple):
    kind: int
    code: int
    id: int
    token: bytes
    options: list[tuple[int, bytes]]
    payload: bytes

    def name(self) -> str:
        if self.kind == RST:
            return "a Reset"
        return "an empty message" if self.code == 0 else f"{self.code >> 5}.{self.code & 31:02}"


def extended(value: int) -> tuple[int, bytes]:
    """A nibble and what follows it, as in options (RFC 7252 section 3.1) and extended tokens (RFC 8974 section 2)."""
    if value < 13:
        return value, b""
    return (13, bytes([value - 13])) if value < 269 else (14, struct.pack("!H", value - 269))


def encoded(message: Message) -> bytes:
    nibble, more = extended(len(message.token))
    out = struct.pack("!BBH", 0x40 | message.kind << 4 | nibble, message.code, message.id) + more + message.token
    last = 0
    for number, value in sorted(message.options):
        delta, after_delta = extended(number - last)
        length, after_length = extended(len(value))
        out += bytes([delta << 4 | length]) + after_delta + after_length + value
        last = number
    return out + (b"\xff" + message.payload if message.payload else b"")


def decoded(data: bytes) -> Message:
    kind, nibble, at = data[0] >> 4 & 3, data[0] & 15, 4

    def length(nibble: int) -> int:
        nonlocal at
        if nibble < 13:
            return nibble
        size, base = (1, 13) if nibble == 13 else (2, 269)
        at += size
        return int.from_bytes(data[at - size:at], "big") + base

    token_length = length(nibble)
    token, options, number = data[at:at + token_length], [], 0
    at += token_length
    while at < len(data) and data[at] != 0xFF:
        first = data[at]
        at += 1
        number += length(first >> 4)
        size = length(first & 15)
        options.append((number, data[at:at + size]))
        at += size
    return Message(kind, data[1], struct.unpack("!H", data[2:4])[0], token, options, data[at + 1:])


class Probe:
    """A socket that sends to one server."""

    def __init__(self, port: int, log) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))
        self.log = log
        self.id = random.Random(port).randrange(65536)

    def close(self) -> None:
        self.socket.close()

    def message(self, path: str, kind: int = CON, code: int = GET, token: bytes | None = None,
                options: tuple[tuple[int, bytes], ...] = (), payload: bytes = b"") -> Message:
        self.id = (self.id + 1) % 65536
        segments = [(URI_PATH, part.encode()) for part in path.split("/") if part]
        return Message(kind, code, self.id, os.urandom(4) if token is None else token, [*segments, *options], payload)

    def send(self, data: bytes) -> None:
        print(f"  > {data[:100].hex()}", file=self.log)
        self.socket.send(data)

    def receive(self, wait: float = 1.0) -> Message | None:
        self.socket.settimeout(wait)
        try:
            data = self.socket.recv(65535)
        except OSError:
            return None
        print(f"  < {data[:100].hex()}", file=self.log)
        return decoded(data)

    def ask(self, message: Message, wait: float = 1.0) -> Message | None:
        """The response; empty acknowledgements are passed over, and Confirmable responses acknowledged."""
        self.send(encoded(message))
        while (answer := self.receive(wait)) is not None:
            if answer.kind == CON:
                self.send(encoded(Message(ACK, 0, answer.id, b"", [], b"")))
            if answer.kind == RST or answer.code != 0:
                return answer
        return None


def shown(answer: Message | None) -> str:
    return "no answer" if answer is None else answer.name()


def expect(answer: Message | None, code: str, token: bytes | None = None) -> str | None:
    if answer is None or answer.name() != code:
        return f"{shown(answer)} instead of {code}"
    if token is not None and answer.token != token:
        return "another token"
    return None


def rejected(answer: Message | None) -> str | None:
    """A message is rejected by a Reset or silently (RFC 7252 sections 4.2 and 4.3)."""
    return None if answer is None or answer.kind == RST else f"answered by {answer.name()}"


def token_of_eight(probe: Probe) -> str | None:
    token = bytes(range(8))
    return expect(probe.ask(probe.message("test", token=token)), "2.05", token)


def no_token(probe: Probe) -> str | None:
    return expect(probe.ask(probe.message("test", token=b"")), "2.05", b"")


def extended_token(probe: Probe) -> str | None:
    token = bytes(range(20))
    answer = probe.ask(probe.message("test", token=token))
    # RFC 8974 section 2.2.2: a server without support rejects the message, which has a reserved length.
    if answer is None or answer.kind == RST or answer.code == 0x80:
        raise NotSupported("a token of 20 bytes is rejected")
    return expect(answer, "2.05", token)


def another_version(probe: Probe) -> str | None:
    data = bytearray(encoded(probe.message("test")))
    data[0] = data[0] & 0x3F | 0x80
    probe.send(bytes(data))
    answer = probe.receive(0.5)
    return None if answer is None else f"answered by {answer.name()}"


def marker_without_payload(probe: Probe) -> str | None:
    probe.send(encoded(probe.message("test")) + b"\xff")
    return rejected(probe.receive(0.5))


def truncated_option(probe: Probe) -> str | None:
    probe.send(encoded(probe.message("test"))[:-2])
    return rejected(probe.receive(0.5))


def critical_in_non(probe: Probe) -> str | None:
    return rejected(probe.ask(probe.message("test", kind=NON, options=((65001, b"x"),)), 0.5))


def reserved_code(probe: Probe) -> str | None:
    """RFC 7252 section 4.2: a Confirmable message with a code of a reserved class is rejected."""
    probe.send(encoded(probe.message("test", code=0x20 | 5)))
    return rejected(probe.receive(0.5))


def unknown_method(probe: Probe) -> str | None:
    return expect(probe.ask(probe.message("test", code=30)), "4.05")


def same_answer_to_a_copy(probe: Probe) -> str | None:
    message = probe.message("count", code=POST)
    first, copy = probe.ask(message), probe.ask(message)
    if first is None or copy is None:
        return "no answer"
    return None if first == copy else f"first {first.payload!r}, then {copy.payload!r}"


def block_without_the_first(probe: Probe) -> str | None:
    answer = probe.ask(probe.message("length", code=PUT, options=((BLOCK1, bytes([0x22])),), payload=b"x" * 64))
    return expect(answer, "4.08")


def gap_between_blocks(probe: Probe) -> str | None:
    """The first block of an upload, then the third as its last (RFC 7959 section 2.5)."""
    first = probe.ask(probe.message("length", code=PUT, options=((BLOCK1, bytes([0x0A])),), payload=b"x" * 64))
    if wrong := expect(first, "2.31"):
        return wrong
    return expect(probe.ask(probe.message("length", code=PUT, options=((BLOCK1, bytes([0x22])),), payload=b"x" * 64)), "4.08")


def short_block_with_more(probe: Probe) -> str | None:
    """RFC 7959 section 2.2: "the block size implied by SZX MUST match the size of the payload in bytes, if the M bit is set"."""
    answer = probe.ask(probe.message("length", code=PUT, options=((BLOCK1, bytes([0x0A])),), payload=b"x" * 40))
    return None if answer is not None and answer.code >> 5 == 4 else f"{shown(answer)} instead of 4.xx"


def session_after_a_malformed_message(probe: Probe) -> str | None:
    """An upload and a separate response survive malformed datagrams from the same address (RFC 7252 section 4.2)."""
    separate = probe.message("separate")
    first = probe.ask(probe.message("length", code=PUT, options=((BLOCK1, bytes([0x0A])),), payload=b"x" * 64))
    if wrong := expect(first, "2.31"):
        return wrong
    probe.send(encoded(separate))
    for malformed in (encoded(probe.message("test")) + b"\xff", encoded(probe.message("test"))[:-2]):
        probe.send(malformed)
    response = None
    for _ in range(8):
        answer = probe.receive(1.0)
        if answer is None:
            break
        if answer.kind == CON:
            probe.send(encoded(Message(ACK, 0, answer.id, b"", [], b"")))
        if answer.token == separate.token and answer.code:
            response = answer
            break
    if wrong := expect(response, "2.05"):
        return f"a separate response: {wrong}"
    last = probe.ask(probe.message("length", code=PUT, options=((BLOCK1, bytes([0x12])),), payload=b"x" * 8))
    wrong = expect(last, "2.04")
    return f"the upload: {wrong}" if wrong else None


def malformed_confirmable(probe: Probe) -> str | None:
    """RFC 7252 section 4.2: a Confirmable message with a format error is rejected, here by a Reset."""
    message = probe.message("test")
    probe.send(encoded(message) + b"\xff")
    answer = probe.receive(0.5)
    if answer is None:
        raise NotSupported("ignored silently, which the clause allows")
    return None if answer.kind == RST and answer.id == message.id else f"answered by {answer.name()}"


def block_after_the_last(probe: Probe) -> str | None:
    answer = probe.ask(probe.message("medium", options=((BLOCK2, bytes([0x0F, 0xF6])),)))
    return None if answer is not None and answer.code >> 5 == 4 else f"{shown(answer)} instead of 4.xx"


def reserved_block_size(probe: Probe) -> str | None:
    """RFC 7959 section 2.2: "the value 7 for SZX (...) is reserved, i.e., MUST NOT be sent and MUST lead to a 4.00"."""
    return expect(probe.ask(probe.message("medium", options=((BLOCK2, bytes([0x07])),))), "4.00")


def repeated_block(probe: Probe) -> str | None:
    """RFC 7252 section 5.4.5: the second one of an option that is not repeatable is an unknown option, here a critical one."""
    answer = probe.ask(probe.message("medium", options=((BLOCK2, bytes([0x06])), (BLOCK2, bytes([0x16])))))
    return None if answer is not None and answer.name() in ("4.00", "4.02") else f"{shown(answer)} instead of 4.02"


def smaller_blocks_midway(probe: Probe) -> str | None:
    """The first block of 1024 bytes, then blocks of 256 from where it ends (RFC 7959 section 2.4)."""
    first = probe.ask(probe.message("medium", options=((BLOCK2, bytes([0x06])),)))
    second = probe.ask(probe.message("medium", options=((BLOCK2, bytes([0x44])),)))
    wrong = expect(first, "2.05") or expect(second, "2.05")
    if wrong or first is None or second is None:
        return wrong
    if len(first.payload) != 1024:
        return f"a first block of {len(first.payload)} bytes"
    return None if second.payload == (b"0123456789" * 200)[1024:1280] else f"{len(second.payload)} bytes after the first"


class RawFeature(NamedTuple):
    name: str
    reference: str
    check: Callable[[Probe], str | None]


RAW = [
    RawFeature("token of 8 bytes", "RFC 7252 5.3.1", token_of_eight),
    RawFeature("no token", "RFC 7252 5.3.1", no_token),
    RawFeature("token of 20 bytes", "RFC 8974 2", extended_token),
    RawFeature("another version is ignored", "RFC 7252 3", another_version),
    RawFeature("a payload marker without payload is rejected", "RFC 7252 3", marker_without_payload),
    RawFeature("a Reset for it, with its message ID", "RFC 7252 4.2", malformed_confirmable),
    RawFeature("a malformed datagram disturbs nothing else", "RFC 7252 4.2", session_after_a_malformed_message),
    RawFeature("a truncated option is rejected", "RFC 7252 3", truncated_option),
    RawFeature("a reserved class of codes is rejected", "RFC 7252 4.2", reserved_code),
    RawFeature("an unknown critical option in a Non-confirmable request is rejected", "RFC 7252 5.4.1", critical_in_non),
    RawFeature("4.05 for an unknown method", "RFC 7252 5.8", unknown_method),
    RawFeature("a copy of a POST gets the same answer", "RFC 7252 4.5", same_answer_to_a_copy),
    RawFeature("4.08 for a second block without the first", "RFC 7959 2.9.2", block_without_the_first),
    RawFeature("4.08 for a gap between blocks", "RFC 7959 2.5", gap_between_blocks),
    RawFeature("an error for a short block before the last", "RFC 7959 2.2", short_block_with_more),
    RawFeature("an error for a block after the last", "RFC 7959 2.4", block_after_the_last),
    RawFeature("4.00 for the reserved block size", "RFC 7959 2.2", reserved_block_size),
    RawFeature("4.02 or 4.00 for a repeated Block2", "RFC 7252 5.4.5", repeated_block),
    RawFeature("smaller blocks midway", "RFC 7959 2.4", smaller_blocks_midway),
]
