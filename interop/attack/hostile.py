"""What strangers send, as processes within the clients' namespace (attack.py starts them).

Each prints a line when it is ready, sends for its time, and prints what came of it as JSON. All addresses of
10.0.0.0/8 are the namespace's own, so that nothing that is sent here reaches another network.
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import select
import socket
import ssl
import struct
import time

HEADERS = 28  # of IPv4 and UDP
URI_HOST, OBSERVE, URI_PATH, BLOCK2, Q_BLOCK2, PROXY_SCHEME, ECHO = 3, 6, 11, 23, 31, 39, 252
CONFIRMABLE, NON_CONFIRMABLE, GET, POST, PUT = 0, 1, 1, 2, 3


def place(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def many_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def udp(address, port=0):
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found.bind((address, port))
    found.setblocking(False)
    return found


def steadily(rate, seconds):
    """The numbers of what is due, as its time comes; what is more than 50 ms late is left out."""
    began, done = time.monotonic(), 0
    while (elapsed := time.monotonic() - began) < seconds:
        due = int(elapsed * rate)
        yield from range(max(done, due - rate // 20), due)
        done = due
        time.sleep(0.0005)


# CoAP

def coap(kind, number, options, token=b"\x2a", code=GET, payload=b""):
    """A request (RFC 7252 section 3) with these options, ascending."""
    parts, last = [struct.pack("!BBH", 0x40 | kind << 4 | len(token), code, number & 0xFFFF), token], 0
    for option, value in options:
        delta, extended = option - last, b""
        if delta >= 13:
            delta, extended = 13, bytes([delta - 13])
        parts += [bytes([delta << 4 | len(value)]), extended, value]
        last = option
    return b"".join(parts) + (b"\xff" + payload if payload else b"")


def option_of(message, wanted):
    """The value of an option of a message without long values, or None."""
    at, number = 4 + (message[0] & 15), 0
    while at < len(message) and message[at] != 0xFF:
        delta, length = message[at] >> 4, message[at] & 15
        at += 1
        if delta == 13:
            delta, at = 13 + message[at], at + 1
        number += delta
        if number == wanted:
            return message[at:at + length]
        at += length
    return None


def verify(client, server, *path):
    """Asks for a long resource as an honest client does, until its first block is here."""
    client.settimeout(1)
    echo = []
    for number in range(20):
        client.sendto(coap(CONFIRMABLE, number, [*((URI_PATH, each) for each in path), *echo]), server)
        with contextlib.suppress(TimeoutError):
            answer = client.recv(2048)
            if answer[1] == 0x45:
                client.setblocking(False)
                return
            if (value := option_of(answer, ECHO)) is not None:
                echo = [(ECHO, value)]
    raise SystemExit("the server sent no answer to a request with its Echo value")


FORGED = {
    "burst": (NON_CONFIRMABLE, [(URI_PATH, b"large"), (Q_BLOCK2, b"\x0e")]),
    "first-block": (CONFIRMABLE, [(URI_PATH, b"large")]),
    "later-block": (CONFIRMABLE, [(URI_PATH, b"large"), (BLOCK2, b"\x16")]),
    "missing-blocks": (NON_CONFIRMABLE, [(URI_PATH, b"large"), *((Q_BLOCK2, bytes([n << 4 | 6])) for n in range(10))]),
    "observe": (CONFIRMABLE, [(OBSERVE, b""), (URI_PATH, b"time")]),
}


def forged(options):
    """Requests from the address of a client that was verified and is silent since. What comes out is counted
    as IP has it, at that address, with nothing answered."""
    server = place(options.server)
    many_files()
    found = {}
    for number, (name, (kind, request)) in enumerate(FORGED.items()):
        for way in ("same port", "other ports"):
            victim = udp(f"10.1.{number}.{1 if way == 'same port' else 2}")
            verify(victim, server, b"large")
            count = 1 if way == "same port" else options.count
            sockets = [victim] if count == 1 else [udp(victim.getsockname()[0]) for _ in range(count)]
            bytes_in = bytes_out = 0
            for each in sockets:
                for _ in range(options.count // count):
                    # The IDs are those of new messages.
                    datagram = coap(kind, 1000 + bytes_in, request)
                    bytes_in += len(datagram) + HEADERS
                    each.sendto(datagram, server)
            found[f"{name}, {way}"] = [sockets, bytes_in, bytes_out]
    ready()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for row in found.values():
            for each in row[0]:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        row[2] += len(each.recv(2048)) + HEADERS
        time.sleep(0.01)
    print(json.dumps({name: out / max(sent, 1) for name, (_, sent, out) in found.items()}))


def forwards(options):
    """Requests of one verified address that a gateway is to forward to devices that do not answer, in 10.9.0.0/16."""
    server, to = place(options.server), place(options.to or options.server)
    many_files()
    devices = [udp(f"10.9.{number >> 7}.{1 + (number & 127)}", 5683) for number in range(options.count)]
    client, sent = udp("10.4.0.1"), 0
    verify(client, server, b".well-known", b"core")
    ready()
    for number in steadily(options.rate, options.seconds):
        host = devices[number % len(devices)].getsockname()[0].encode()
        request = [(URI_HOST, host), (URI_PATH, b"x"), (PROXY_SCHEME, b"coap")]
        with contextlib.suppress(OSError):
            client.sendto(coap(CONFIRMABLE, number, request, code=PUT), to)
            sent += 1
    print(json.dumps({"sent": sent / options.seconds}))


# Message 1 of RFC 9529 chapter 3 for the suite that the server has, after the byte that says that it is the first.
MESSAGE_1 = bytes.fromhex("f503025820" "8af6f430ebe18d34184017a9a11bf511c8dff8f834730b96c1b7c8dbca2fc3b6" "37")


def edhoc(options):
    """Begins handshakes from one address, which it shows to be its own, and completes none."""
    server, to = place(options.server), place(options.to or options.server)
    stranger, echo = udp("10.0.0.7"), []

    def message(number):
        path = [(URI_PATH, b".well-known"), (URI_PATH, b"edhoc")]
        return coap(CONFIRMABLE, number, path + echo, number.to_bytes(4, "big"), POST, MESSAGE_1)

    stranger.settimeout(1)
    for number in range(200):
        stranger.sendto(message(number), server)
        with contextlib.suppress(TimeoutError):
            if value := option_of(stranger.recv(2048), ECHO):
                echo = [(ECHO, value)]
                break
    stranger.setblocking(False)
    ready()
    sent = 0
    for number in steadily(options.rate, options.seconds):
        with contextlib.suppress(OSError):
            stranger.sendto(message(1000 + number), to)
            sent += 1
    answered = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            answered += stranger.recv(2048)[1] == 0x44
    print(json.dumps({"sent": sent / options.seconds, "of the last answers message 2": answered}))


# DTLS

def client_hello(random, cookie, sequence, suite):
    """A record with a ClientHello of DTLS 1.2 (RFC 6347 section 4.3.2)."""
    extensions = bytes([0, 23, 0, 0, 0, 10, 0, 4, 0, 2, 0, 23, 0, 11, 0, 2, 1, 0, 0, 13, 0, 4, 0, 2, 4, 3])
    body = b"\xfe\xfd" + random + b"\0" + bytes([len(cookie)]) + cookie + b"\0\2" + suite + b"\1\0"
    body += struct.pack("!H", len(extensions)) + extensions
    length = len(body).to_bytes(3, "big")
    message = b"\1" + length + struct.pack("!H", sequence) + b"\0\0\0" + length + body
    return b"\x16\xfe\xfd" + sequence.to_bytes(8, "big") + struct.pack("!H", len(message)) + message


# The base point of P-256, as a key share.
SHARE = bytes.fromhex("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
                      "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")


def client_hello_13(random, cookie, sequence):
    """The same of DTLS 1.3 (RFC 9147 section 5.3)."""
    extensions = bytes([0, 43, 0, 3, 2, 0xfe, 0xfc, 0, 10, 0, 4, 0, 2, 0, 23, 0, 13, 0, 4, 0, 2, 4, 3, 0, 51, 0, 71, 0, 69, 0, 23, 0, 65])
    extensions += SHARE
    if cookie:
        extensions += struct.pack("!HHH", 44, 2 + len(cookie), len(cookie)) + cookie
    body = b"\xfe\xfd" + random + b"\0\0\0\2\x13\x01\1\0" + struct.pack("!H", len(extensions)) + extensions
    length = len(body).to_bytes(3, "big")
    message = b"\1" + length + struct.pack("!H", sequence) + b"\0\0\0" + length + body
    return b"\x16\xfe\xfd" + sequence.to_bytes(8, "big") + struct.pack("!H", len(message)) + message


def cookie_13(answer):
    """The cookie of a HelloRetryRequest: after headers of 13 and 12 bytes, 40 others and the session ID."""
    at = 13 + 12 + 40 + answer[13 + 12 + 34]
    while at < len(answer):
        kind, length = struct.unpack("!HH", answer[at:at + 4])
        if kind == 44:
            return answer[at + 6:at + 4 + length]
        at += 4 + length
    raise SystemExit("the server has sent no cookie")


def hellos(options):
    """Gathers a cookie for each port of one address, and replays these ClientHellos."""
    server, to = place(options.server), place(options.to or options.server)
    suite = bytes.fromhex("c0ae" if options.certificates else "c0a8")
    many_files()
    known = []
    for number in range(options.count):
        each = udp("10.0.0.7")
        random = os.urandom(32)
        first = client_hello_13(random, b"", 0) if options.version_13 else client_hello(random, b"", 0, suite)
        each.sendto(first, server)
        each.settimeout(1)
        with contextlib.suppress(TimeoutError):
            answer = each.recv(2048)
            if options.version_13:
                known.append((each, client_hello_13(random, cookie_13(answer), 1)))
            else:
                # A HelloVerifyRequest: headers of 13 and 12 bytes, a version, the cookie's length.
                known.append((each, client_hello(random, answer[28:28 + answer[27]], 1, suite)))
        each.setblocking(False)
    ready()
    sent = 0
    for number in steadily(options.rate, options.seconds):
        each, hello = known[number % len(known)]
        with contextlib.suppress(OSError):
            each.sendto(hello, to)
            sent += 1
    print(json.dumps({"sent": sent / options.seconds, "bits": sent * (len(known[0][1]) + HEADERS) * 8 / options.seconds}))


def takeover(options):
    """Passes a client's records on, after a copy of each from another address, to `to`: the copy is the first to arrive."""
    server, to = place(options.server), place(options.to or options.server)
    inner, outer, thief = udp("127.0.0.1", 5684), udp("10.3.0.1"), udp("10.3.0.2")
    client, copied, stolen = None, 0, 0
    ready()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for source in select.select((inner, outer, thief), (), (), 0.1)[0]:
            with contextlib.suppress(BlockingIOError):
                while True:
                    datagram, sender = source.recvfrom(2048)
                    if source is inner:
                        client = sender
                        # 25: protected, with a connection ID (RFC 9146 section 4).
                        if datagram[0] == 25:
                            thief.sendto(datagram, to)
                            copied += len(datagram) + HEADERS
                        outer.sendto(datagram, server)
                    elif source is outer:
                        inner.sendto(datagram, client)
                    else:
                        stolen += len(datagram) + HEADERS
    print(json.dumps({"copied": copied, "stolen": stolen}))


# IP

def ipv4(source, destination, payload, **other):
    """A datagram over IPv4 (RFC 791 section 3.1); `other` names fields that are wrong."""
    udp_header = struct.pack("!HHHH", 5000, 5683, 8 + len(payload), 0)
    words = [other.get("first", 0x4500), other.get("length", 28 + len(payload)), 0, 0, 0x4011, 0]
    words += struct.unpack("!4H", socket.inet_aton(source) + socket.inet_aton(destination))
    words[5] = ~sum(divmod(sum(words), 0x10000)) & 0xFFFF
    return struct.pack("!10H", *words) + udp_header + payload


def behind(options):
    """A program behind the emulator that sends what its own network would not: forged sources, and what is no IPv4."""
    host, _ = place(options.server)
    names = [line.split(":")[0].strip() for line in pathlib.Path("/proc/net/dev").read_text().splitlines()[2:]]
    device = next(name for name in names if name != "lo")
    link = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
    own, sent = "10.83.1.1", 0
    for number in range(options.count):
        for source in ("192.0.2.2", "192.0.2.1", "127.0.0.1", "198.51.100.9", "10.5.5.5", "10.83.0.1", "0.0.0.0", "255.255.255.255"):
            link.sendto(ipv4(source, host, b"forged"), (device, 0x0800))
            sent += 1
        for junk in (b"", b"\x45", os.urandom(40), b"\x60" + bytes(60), ipv4(own, host, b"junk", length=9000),
                     ipv4(own, host, b"junk", first=0x4F00), ipv4(own, host, b"junk", first=0x4100), bytes(9000)):
            with contextlib.suppress(OSError):
                link.sendto(junk, (device, 0x0800))
        time.sleep(0.002)
    honest = udp(own)
    for _ in range(20):
        honest.sendto(b"honest", place(options.server))
        time.sleep(0.05)
    print(json.dumps({"forged": sent}))


def listen(options):
    """Counts the datagrams that arrive."""
    found, end, count = udp("0.0.0.0", 5683), time.monotonic() + options.seconds, {"forged": 0, "honest": 0, "junk": 0}
    ready()
    while time.monotonic() < end and count["honest"] < 10:
        with contextlib.suppress(BlockingIOError):
            count[found.recv(2048).decode()] += 1
            continue
        time.sleep(0.01)
    print(json.dumps(count))


# TLS and HTTP

def tls_hello():
    """What a TLS client sends first, with the key that it would agree on."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["coap"])
    received, sends = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(received, sends).do_handshake()
    return sends.read()


def creep(options):
    """Connections that send the beginning of a request and then a byte a second; who is ended comes again."""
    to, held = place(options.to or options.server), []

    def new():
        connection = socket.socket()
        connection.settimeout(0.2)
        with contextlib.suppress(OSError):
            connection.connect(to)
            connection.send(b"GET /me")
        connection.setblocking(False)
        return connection

    held = [new() for _ in range(options.count)]
    ready()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for number, connection in enumerate(held):
            try:
                connection.send(b"t")
            except OSError:
                connection.close()
                held[number] = new()
        time.sleep(0.2)
    print(json.dumps({"connections": len(held)}))


# Honest

def scrape(options):
    """Reads the metrics again and again; one that has not come within a second counts as none."""
    to, came, tried = place(options.server), 0, 0
    ready()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        tried += 1
        with contextlib.suppress(OSError), socket.create_connection(to, timeout=1) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: s\r\n\r\n")
            came += connection.recv(64).startswith(b"HTTP/1.1 200")
        time.sleep(0.05)
    print(json.dumps({"came": came, "tried": tried}))


def relay(options):
    """Passes datagrams on, both ways, each after half of the round trip."""
    server, inner, outer = place(options.server), udp("127.0.0.1", 5684), udp("10.3.0.1")
    client, waits = None, []
    ready()
    while True:
        time.sleep(0.001)
        for source, out in ((inner, outer), (outer, inner)):
            with contextlib.suppress(BlockingIOError):
                while True:
                    datagram, sender = source.recvfrom(2048)
                    client = sender if source is inner else client
                    waits.append((time.monotonic() + options.round_trip / 2, out, datagram))
        while waits and waits[0][0] <= time.monotonic():
            _, out, datagram = waits.pop(0)
            out.sendto(datagram, server if out is outer else client)


def ready():
    print("ready", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=[each.__name__ for each in WHAT])
    parser.add_argument("server")
    parser.add_argument("--to")
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--round-trip", type=float, default=2)
    parser.add_argument("--certificates", action="store_true")
    parser.add_argument("--version-13", action="store_true", help="DTLS 1.3")
    options = parser.parse_args()
    next(each for each in WHAT if each.__name__ == options.what)(options)


WHAT = (forged, forwards, edhoc, hellos, takeover, behind, listen, creep, scrape, relay)

if __name__ == "__main__":
    main()
