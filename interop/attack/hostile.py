"""What strangers send, as processes within the clients' namespace (attack.py starts them).

Each prints a line when it is ready, sends for its time, and prints what came of it as JSON. All addresses of
10.0.0.0/8 are the namespace's own, so that nothing that is sent here reaches another network.
"""

import argparse
import contextlib
import json
import os
import resource
import selectors
import socket
import ssl
import statistics
import struct
import time

HEADERS = 28  # of IPv4 and UDP
OBSERVE, URI_PATH, BLOCK2, Q_BLOCK2, ECHO = 6, 11, 23, 31, 252
CONFIRMABLE, NON_CONFIRMABLE, GET = 0, 1, 1


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

def coap(kind, number, options, token=b"\x2a"):
    """A GET (RFC 7252 section 3) with these options, ascending."""
    parts, last = [struct.pack("!BBH", 0x40 | kind << 4 | len(token), GET, number & 0xFFFF), token], 0
    for option, value in options:
        delta, extended = option - last, b""
        if delta >= 13:
            delta, extended = 13, bytes([delta - 13])
        parts += [bytes([delta << 4 | len(value)]), extended, value]
        last = option
    return b"".join(parts)


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


def verify(client, server, path):
    """Asks for a long resource as an honest client does, until its first block is here."""
    client.settimeout(1)
    echo = []
    for number in range(20):
        client.sendto(coap(CONFIRMABLE, number, [(URI_PATH, path), *echo]), server)
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


# DTLS

def client_hello(random, cookie, sequence, suite):
    """A record with a ClientHello of DTLS 1.2 (RFC 6347 section 4.3.2)."""
    extensions = bytes([0, 23, 0, 0, 0, 10, 0, 4, 0, 2, 0, 23, 0, 11, 0, 2, 1, 0, 0, 13, 0, 4, 0, 2, 4, 3])
    body = b"\xfe\xfd" + random + b"\0" + bytes([len(cookie)]) + cookie + b"\0\2" + suite + b"\1\0"
    body += struct.pack("!H", len(extensions)) + extensions
    length = len(body).to_bytes(3, "big")
    message = b"\1" + length + struct.pack("!H", sequence) + b"\0\0\0" + length + body
    return b"\x16\xfe\xfd" + sequence.to_bytes(8, "big") + struct.pack("!H", len(message)) + message


def hellos(options):
    """Gathers a cookie for each port of one address, and replays these ClientHellos."""
    server, to = place(options.server), place(options.to or options.server)
    suite = bytes.fromhex("c0ae" if options.certificates else "c0a8")
    many_files()
    known = []
    for number in range(options.count):
        each = udp("10.0.0.7")
        random = os.urandom(32)
        each.sendto(client_hello(random, b"", 0, suite), server)
        each.settimeout(1)
        with contextlib.suppress(TimeoutError):
            answer = each.recv(2048)
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


def churn(options):
    """TLS connections of 90 addresses that leave when the server has signed."""
    to, hello = place(options.to or options.server), tls_hello()
    many_files()
    selector, opened, answered, held = selectors.DefaultSelector(), 0, 0, {}
    reset = struct.pack("ii", 1, 0)
    ready()

    def leave(connection):
        selector.unregister(connection)
        held.pop(connection, None)
        connection.close()

    for number in steadily(options.rate, options.seconds):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        connection.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        connection.setblocking(False)
        connection.bind((f"10.0.1.{1 + number % 90}", 0))
        with contextlib.suppress(BlockingIOError):
            connection.connect(to)
        selector.register(connection, selectors.EVENT_WRITE)
        held[connection] = time.monotonic()
        opened += 1
        if number % 16:
            continue
        for key, mask in selector.select(0):
            try:
                if mask & selectors.EVENT_WRITE:
                    key.fileobj.send(hello)
                    selector.modify(key.fileobj, selectors.EVENT_READ)
                elif key.fileobj.recv(64):
                    answered += 1
                    leave(key.fileobj)
                else:
                    leave(key.fileobj)
            except OSError:
                leave(key.fileobj)
        old = time.monotonic() - 1
        while held and next(iter(held.values())) < old:
            leave(next(iter(held)))
    print(json.dumps({"opened": opened / options.seconds, "answered": answered / options.seconds}))


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

def ask(options):
    """A client that asks `rate` times a second, whatever the server does; late answers do not count."""
    server, client = place(options.server), udp("10.2.0.1")
    waits, sent, asked, spans = {}, 0, coap(CONFIRMABLE, 0, [(URI_PATH, b"test")], b""), []
    ready()

    def receive():
        with contextlib.suppress(BlockingIOError):
            while True:
                number = client.recv(2048)[2:4]
                if (since := waits.pop(number, None)) is not None:
                    spans.append(time.monotonic() - since)

    for number in steadily(options.rate, options.seconds):
        name = struct.pack("!H", number & 0xFFFF)
        waits[name] = time.monotonic()
        with contextlib.suppress(BlockingIOError):
            client.sendto(asked[:2] + name + asked[4:], server)
        sent += 1
        receive()
    time.sleep(0.2)
    receive()
    quick = [span for span in spans if span < 1]
    print(json.dumps({"per_second": len(quick) / options.seconds, "asked": sent / options.seconds,
                      "p50_ms": 1000 * statistics.median(quick or [float("inf")])}))


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
    options = parser.parse_args()
    next(each for each in WHAT if each.__name__ == options.what)(options)


WHAT = (forged, hellos, churn, creep, ask, scrape, relay)

if __name__ == "__main__":
    main()
