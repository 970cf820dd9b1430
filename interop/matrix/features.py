"""The features of the matrix: what is asked, and which answers are right."""

from typing import Callable, NamedTuple

DIGITS = "0123456789"


class Answer(NamedTuple):
    code: str
    options: dict[int, bytes]
    payload: bytes


class Feature(NamedTuple):
    name: str
    group: str
    reference: str
    requests: list[str]
    # Returns what is wrong, or nothing.
    check: Callable[[list[list[Answer]]], str | None]
    mode: str = "clean"
    # A scheme, or a name of SETTINGS.
    scheme: str = "coap"


class Setting(NamedTuple):
    """A scheme with settings that an adapter takes from its environment."""

    scheme: str
    # The extension that an adapter must list in adapters.toml; without it the cell says that it is not supported.
    extension: str
    environment: dict[str, str]


# Key and credential of the server, and those of the client (RFC 9529 chapter 3).
EDHOC = ":".join([
    "72cc4761dbd4c78f758931aa589d348d1ef874a7e303ede2f140dcf3e6aa4aac",
    "a2026b6578616d706c652e65647508a101a501020241322001215820bbc34960526ea4d32e940cad2a234148ddc21791a12afbcbac93622046dd44f0"
    "2258204519e257236b2a0ce2023f0931f1f386ca7afda64fcde0108c224c51eabf6072",
    "fb13adeb6518cee5f88417660841142e830a81fe334380a953406a1305e8706b",
    "a2027734322d35302d33312d46462d45462d33372d33322d333908a101a5010202412b2001215820ac75e9ece3e50bfc8ed60399889522405c47bf16"
    "df96660a41298cb4307f7eb62258206e5de611388a4b8a8211334ac7d37ecb52a387d257e6db3c2a93df21ff3affc8",
])

# What is empty here, the runner sets to the folder of certificates.
SETTINGS = {
    "certificates": Setting("coaps", "certificates", {"INTEROP_CERTIFICATES": ""}),
    "raw-keys": Setting("coaps", "raw-keys", {"INTEROP_RAW_KEYS": ""}),
    "cid": Setting("coaps", "cid", {"INTEROP_CID": "4"}),
    "dtls13": Setting("coaps", "dtls13", {"INTEROP_CERTIFICATES": "", "INTEROP_DTLS13": "1"}),
    "tls": Setting("coaps+tcp", "tls", {"INTEROP_CERTIFICATES": ""}),
    "q-block": Setting("coap", "q-block", {"INTEROP_Q_BLOCK": "1"}),
    "oscore": Setting("coap", "oscore", {"INTEROP_OSCORE": "1"}),
    "edhoc": Setting("coap", "edhoc", {"INTEROP_EDHOC": EDHOC}),
    "oscore-b2": Setting("coap", "oscore-b2", {"INTEROP_OSCORE": "renewed"}),
}


def digits(length: int) -> bytes:
    return (DIGITS * (length // 10 + 1))[:length].encode()


def brief(payload: bytes) -> str:
    return payload.decode(errors="replace") if len(payload) <= 40 else f"{len(payload)} bytes"


def gives(code: str, payload: bytes | None = None) -> Callable[[list[list[Answer]]], str | None]:
    """Every request is answered by this code and, unless it is None, this payload."""

    def check(asked: list[list[Answer]]) -> str | None:
        if failed(asked):
            return failed(asked)
        for answers in asked:
            for answer in answers:
                if answer.code != code:
                    return f"{answer.code} instead of {code}"
                if payload is not None and answer.payload != payload:
                    return f"another payload: {brief(answer.payload)}"
        return None

    return check


def failed(asked: list[list[Answer]]) -> str | None:
    """The first error of an adapter."""
    errors = [a.payload.decode(errors="replace") for answers in asked for a in answers if a.code == "error"]
    return errors[0][:100] if errors else None


def counts(asked: list[list[Answer]]) -> str | None:
    if failed(asked):
        return failed(asked)
    numbers = [brief(answers[0].payload) for answers in asked]
    if any(answers[0].code != "2.04" or not answers[0].payload.isdigit() for answers in asked):
        return f"{asked[0][0].code} {numbers[0]}"
    first = int(numbers[0])
    if [int(number) for number in numbers] != list(range(first, first + len(numbers))):
        return f"requests were processed more than once: {', '.join(numbers)}"
    return None


def links(asked: list[list[Answer]]) -> str | None:
    if failed(asked):
        return failed(asked)
    text = asked[0][0].payload.decode(errors="replace")
    missing = [name for name in ("</test>", "</time>") if name not in text]
    return f"no {missing[0]} in {text[:60]!r}" if missing else None


def silent(asked: list[list[Answer]]) -> str | None:
    if asked[0][0].code != "error":
        return f"{asked[0][0].code} although No-Response was set"
    return gives("2.05", TEST)(asked[1:])


def fresh(asked: list[list[Answer]]) -> str | None:
    """Notifications reach the application in their order: one that arrives late is dropped (RFC 7641 section 3.4)."""
    if wrong := states(None)(asked):
        return wrong
    numbers = [int.from_bytes(answer.options[6], "big") for answer in asked[0] if 6 in answer.options]
    for before, after in zip(numbers, numbers[1:]):
        # RFC 7641 section 3.4: of two numbers, the later one by serial arithmetic of 24 bits.
        if not 0 < (after - before) % (1 << 24) < 1 << 23:
            return f"notification {after} after {before}"
    return None


def states(length: int | None) -> Callable[[list[list[Answer]]], str | None]:
    def check(asked: list[list[Answer]]) -> str | None:
        answers = asked[0]
        if failed(asked):
            return failed(asked)
        for answer in answers:
            if answer.code != "2.05":
                return f"{answer.code} instead of 2.05"
            if length and (len(answer.payload) != length or len(set(answer.payload)) != 1):
                return f"a notification of {len(answer.payload)} bytes, not {length}"
        if len({answer.payload for answer in answers}) < 2:
            return "the state did not change"
        if len(answers) > 1 and 6 not in answers[1].options:
            return "a notification without the option Observe"
        return None

    return check


def codes(*expected: str) -> Callable[[list[list[Answer]]], str | None]:
    """Each request is answered by the code in its place."""

    def check(asked: list[list[Answer]]) -> str | None:
        if failed(asked):
            return failed(asked)
        for answers, code in zip(asked, expected):
            if answers[0].code != code:
                return f"{answers[0].code} instead of {code}"
        return None

    return check


def valid(asked: list[list[Answer]]) -> str | None:
    """A GET gives an ETag, and a second one that carries it is answered by 2.03 without a payload."""
    if wrong := codes("2.05", "2.03", "2.05")(asked):
        return wrong
    first, again, other = (answers[0] for answers in asked)
    if first.options.get(4) != b"\x2a" or again.options.get(4) != b"\x2a":
        return f"an ETag is missing or another: {first.options.get(4)!r}, {again.options.get(4)!r}"
    if again.payload or first.payload != b"tagged" or other.payload != b"tagged":
        return f"another payload: {brief(first.payload)}, {brief(again.payload)}, {brief(other.payload)}"
    return None


TEST, MEDIUM, LARGE = digits(60), digits(10_000), digits(1 << 20)
HI = b"hi".hex()
KIB = digits(1024)
BASIC, OPTIONS, BLOCKS, OBSERVE = "methods and messages", "options and errors", "block-wise transfer", "observation"
LOSS, TCP, DTLS = "10 % loss", "TCP", "DTLS with a pre-shared key"
Q_BLOCK, CERTIFICATES, CID = "Q-Block", "DTLS with certificates on both sides", "DTLS with connection IDs"
RAW_KEYS = "DTLS with raw public keys on both sides"
DTLS13 = "DTLS 1.3 with certificates on both sides"
TLS, OSCORE = "TLS with certificates on both sides", "OSCORE"
DELAY, REORDERING, MTU, MOVED = "round trip of 1.5 s", "reordering", "MTU of 1280 bytes", "the client's address changes"

FEATURES = [
    Feature("GET", BASIC, "RFC 7252 5.8.1", ["GET /test"], gives("2.05", TEST)),
    Feature("POST", BASIC, "RFC 7252 5.8.2", [f"POST /echo payload={HI}"], gives("2.04", b"hi")),
    Feature("PUT", BASIC, "RFC 7252 5.8.3", [f"PUT /echo payload={HI}"], gives("2.04", b"hi")),
    Feature("DELETE", BASIC, "RFC 7252 5.8.4", ["DELETE /echo"], gives("2.02")),
    Feature("FETCH", BASIC, "RFC 8132 2", [f"FETCH /echo payload={HI} opt=12:00"], gives("2.05", b"hi")),
    Feature("PATCH", BASIC, "RFC 8132 3", [f"PATCH /echo payload={HI}"], gives("2.04", b"hi")),
    Feature("iPATCH", BASIC, "RFC 8132 3", [f"IPATCH /echo payload={HI}"], gives("2.04", b"hi")),
    Feature("Non-confirmable request", BASIC, "RFC 7252 4.3", ["GET /test non"], gives("2.05", TEST)),
    Feature("ping", BASIC, "RFC 7252 4.3", ["PING -"], gives("rst")),
    Feature("separate response", BASIC, "RFC 7252 5.2.2", ["GET /separate"], gives("2.05", b"that took a while")),
    Feature("empty payload", BASIC, "RFC 7252 5.5", ["PUT /echo"], gives("2.04", b"")),
    Feature("payload of 1024 bytes", BASIC, "RFC 7252 4.6", [f"PUT /echo payload={KIB.hex()}"], gives("2.04", KIB)),
    Feature("20 requests in a row", BASIC, "RFC 7252 4.4", ["GET /test"] * 20, gives("2.05", TEST)),
    Feature("everything arrives twice", BASIC, "RFC 7252 4.5", ["POST /count"] * 5, counts, mode="twice"),
    Feature("IPv6", BASIC, "RFC 7252 6.3", ["GET /test"], gives("2.05", TEST), scheme="coap6"),
    Feature("Uri-Query", OPTIONS, "RFC 7252 5.10.1", ["GET /query?a=1&b=2"], gives("2.05", b"a=1&b=2")),
    Feature("escaped Uri-Path", OPTIONS, "RFC 7252 6.4", ["GET /a%20b"], gives("2.05", b"spaced")),
    Feature("4.04", OPTIONS, "RFC 7252 5.9.2.5", ["GET /missing"], gives("4.04")),
    Feature("4.05", OPTIONS, "RFC 7252 5.9.2.6", ["DELETE /test"], gives("4.05")),
    Feature("4.02 for an unknown critical option", OPTIONS, "RFC 7252 5.4.1", ["GET /test opt=65001:78"], gives("4.02")),
    Feature("unknown elective option ignored", OPTIONS, "RFC 7252 5.4.1", ["GET /test opt=65000:78"], gives("2.05", TEST)),
    Feature("Hop-Limit ignored", OPTIONS, "RFC 8768 3", ["GET /test opt=16:03"], gives("2.05", TEST)),
    Feature("5.05 for Proxy-Uri", OPTIONS, "RFC 7252 5.10.2", ["GET /test opt=35:" + b"coap://192.0.2.1/x".hex()], gives("5.05")),
    Feature("No-Response", OPTIONS, "RFC 7967 2", ["GET /test non opt=258:02 wait=1", "GET /test"], silent),
    Feature("ETag: 2.03 for the same version", OPTIONS, "RFC 7252 5.10.6.2", ["GET /tagged", "GET /tagged opt=4:2a", "GET /tagged opt=4:2b"], valid),
    Feature("If-Match", OPTIONS, "RFC 7252 5.10.8.1", ["PUT /tagged opt=1:2a", "PUT /tagged opt=1:2b"], codes("2.04", "4.12")),
    Feature("If-None-Match", OPTIONS, "RFC 7252 5.10.8.2", ["PUT /tagged", "PUT /tagged opt=5:"], codes("2.04", "4.12")),
    Feature("Accept: 4.06 for another format", OPTIONS, "RFC 7252 5.10.4", ["GET /tagged opt=17:", "GET /tagged opt=17:3c"], codes("2.05", "4.06")),
    Feature("Echo: the client repeats a challenged request", OPTIONS, "RFC 9175 2.3", ["GET /fresh"], gives("2.05", b"fresh")),
    Feature("discovery", OPTIONS, "RFC 6690 4", ["GET /.well-known/core"], links),
    Feature("Block2", BLOCKS, "RFC 7959 2.4", ["GET /medium"], gives("2.05", MEDIUM)),
    Feature("Block2, 64-byte blocks", BLOCKS, "RFC 7959 2.4", ["GET /medium block=64"], gives("2.05", MEDIUM)),
    Feature("Block2, 1 MiB", BLOCKS, "RFC 7959 2.4", ["GET /large wait=30"], gives("2.05", LARGE)),
    Feature("Block1", BLOCKS, "RFC 7959 2.5", ["PUT /length digits=10000"], gives("2.04", b"10000")),
    Feature("Block1, 64-byte blocks", BLOCKS, "RFC 7959 2.5", ["PUT /length digits=10000 block=64"], gives("2.04", b"10000")),
    Feature("Block1 and Block2", BLOCKS, "RFC 7959 3.3", ["PUT /echo digits=10000"], gives("2.04", MEDIUM)),
    Feature("Block1, 1 MiB", BLOCKS, "RFC 7959 2.5", ["PUT /length digits=1048576 wait=30"], gives("2.04", b"1048576")),
    Feature("observe", OBSERVE, "RFC 7641 3", ["GET /time observe=3"], states(None)),
    Feature("observation cancelled", OBSERVE, "RFC 7641 3.6", ["GET /time observe=2"], states(None)),
    Feature("notifications in blocks", OBSERVE, "RFC 7959 2.6", ["GET /times observe=3"], states(3000)),
    Feature("GET", LOSS, "RFC 7252 4.2", ["GET /test wait=30"] * 8, gives("2.05", TEST), mode="loss"),
    Feature("POST, once each", LOSS, "RFC 7252 4.5", ["POST /count wait=30"] * 8, counts, mode="loss"),
    Feature("separate response", LOSS, "RFC 7252 5.2.2", ["GET /separate wait=30"] * 2, gives("2.05", b"that took a while"), mode="loss"),
    Feature("Block2", LOSS, "RFC 7959 2.4", ["GET /medium wait=30"], gives("2.05", MEDIUM), mode="loss"),
    Feature("Block1", LOSS, "RFC 7959 2.5", ["PUT /length digits=10000 wait=30"], gives("2.04", b"10000"), mode="loss"),
    Feature("observe", LOSS, "RFC 7641 4.5", ["GET /time observe=6 wait=30"], states(None), mode="loss"),
    # Longer than the timeout of adapters: whatever waits that long is repeated.
    Feature("GET", DELAY, "RFC 7252 4.2", ["GET /test wait=15"] * 2, gives("2.05", TEST), mode="delay"),
    Feature("POST, once each", DELAY, "RFC 7252 4.5", ["POST /count wait=15"] * 3, counts, mode="delay"),
    Feature("Block1", DELAY, "RFC 7959 2.5", ["PUT /length digits=3000 wait=30"], gives("2.04", b"3000"), mode="delay"),
    Feature("observe", DELAY, "RFC 7641 3", ["GET /time observe=3 wait=20"], states(None), mode="delay"),
    Feature("POST, once each", REORDERING, "RFC 7252 4.5", ["POST /count wait=15"] * 5, counts, mode="reordering"),
    Feature("Block2", REORDERING, "RFC 7959 2.4", ["GET /medium wait=30"], gives("2.05", MEDIUM), mode="reordering"),
    Feature("Block1", REORDERING, "RFC 7959 2.5", ["PUT /length digits=10000 wait=30"], gives("2.04", b"10000"), mode="reordering"),
    Feature("observe: older notifications are dropped", REORDERING, "RFC 7641 3.4", ["GET /time observe=8 wait=20"], fresh, mode="reordering"),
    Feature("Block1 and Block2", MTU, "RFC 7252 4.6", ["PUT /echo digits=10000"], gives("2.04", MEDIUM), mode="mtu"),
    Feature("DTLS with certificates", MTU, "RFC 6347 4.1.1.1", ["GET /test"], gives("2.05", TEST), mode="mtu", scheme="certificates"),
    Feature("OSCORE, Block2", MTU, "RFC 8613 4.1.3.4", ["GET /medium"], gives("2.05", MEDIUM), mode="mtu", scheme="oscore"),
    Feature("Q-Block2", MTU, "RFC 9177 4.4", ["GET /medium"], gives("2.05", MEDIUM), mode="mtu", scheme="q-block"),
    Feature("POST, once each", MOVED, "RFC 7252 4.5", ["POST /count"] * 4, counts, mode="moved"),
    Feature("within a Block2 transfer", MOVED, "RFC 7959 2.4", ["GET /medium wait=20"], gives("2.05", MEDIUM), mode="moved midway"),
    Feature("GET", TCP, "RFC 8323 3", ["GET /test"], gives("2.05", TEST), scheme="coap+tcp"),
    Feature("upload of 10 kB", TCP, "RFC 8323 5.3.1", ["PUT /length digits=10000"], gives("2.04", b"10000"), scheme="coap+tcp"),
    Feature("download of 1 MiB", TCP, "RFC 8323 6", ["GET /large wait=30"], gives("2.05", LARGE), scheme="coap+tcp"),
    Feature("observe", TCP, "RFC 8323 7", ["GET /time observe=3"], states(None), scheme="coap+tcp"),
    Feature("GET", DTLS, "RFC 7252 9.1.3.1", ["GET /test"], gives("2.05", TEST), scheme="coaps"),
    Feature("Block1 and Block2", DTLS, "RFC 7959 3.3", ["PUT /echo digits=10000"], gives("2.04", MEDIUM), scheme="coaps"),
    Feature("observe", DTLS, "RFC 7641 3", ["GET /time observe=3"], states(None), scheme="coaps"),
    Feature("GET, with 10 % loss", DTLS, "RFC 6347 4.2.4", ["GET /test wait=40"] * 4, gives("2.05", TEST), mode="loss", scheme="coaps"),
    Feature("GET", CERTIFICATES, "RFC 7252 9.1.3.3", ["GET /test"], gives("2.05", TEST), scheme="certificates"),
    Feature("Block1 and Block2", CERTIFICATES, "RFC 7959 3.3", ["PUT /echo digits=10000"], gives("2.04", MEDIUM), scheme="certificates"),
    Feature("GET, with 10 % loss", CERTIFICATES, "RFC 6347 4.2.4", ["GET /test wait=40"] * 4, gives("2.05", TEST), mode="loss", scheme="certificates"),
    Feature("GET", RAW_KEYS, "RFC 7250 4", ["GET /test"], gives("2.05", TEST), scheme="raw-keys"),
    Feature("GET, with 10 % loss", RAW_KEYS, "RFC 6347 4.2.4", ["GET /test wait=40"] * 4, gives("2.05", TEST), mode="loss", scheme="raw-keys"),
    Feature("GET", CID, "RFC 9146 3", ["GET /test"], gives("2.05", TEST), scheme="cid"),
    Feature("the client's address changes", CID, "RFC 9146 6", ["GET /test", "GET /test"], gives("2.05", TEST), mode="moved", scheme="cid"),
    Feature("GET", DTLS13, "RFC 9147 5", ["GET /test"], gives("2.05", TEST), scheme="dtls13"),
    Feature("Block1 and Block2", DTLS13, "RFC 7959 3.3", ["PUT /echo digits=10000"], gives("2.04", MEDIUM), scheme="dtls13"),
    Feature("observe", DTLS13, "RFC 7641 3", ["GET /time observe=3"], states(None), scheme="dtls13"),
    Feature("GET, with 10 % loss", DTLS13, "RFC 9147 5.8", ["GET /test wait=40"] * 4, gives("2.05", TEST), mode="loss", scheme="dtls13"),
    Feature("Block1 and Block2, with 10 % loss", DTLS13, "RFC 9147 7", ["PUT /echo digits=10000 wait=40"], gives("2.04", MEDIUM), mode="loss", scheme="dtls13"),
    Feature("GET", TLS, "RFC 8323 8.2", ["GET /test"], gives("2.05", TEST), scheme="tls"),
    Feature("upload of 10 kB", TLS, "RFC 8323 5.3.1", ["PUT /length digits=10000"], gives("2.04", b"10000"), scheme="tls"),
    Feature("download of 1 MiB", TLS, "RFC 8323 6", ["GET /large wait=30"], gives("2.05", LARGE), scheme="tls"),
    Feature("observe", TLS, "RFC 8323 7", ["GET /time observe=3"], states(None), scheme="tls"),
    Feature("Q-Block2", Q_BLOCK, "RFC 9177 4.4", ["GET /medium"], gives("2.05", MEDIUM), scheme="q-block"),
    Feature("Q-Block1", Q_BLOCK, "RFC 9177 4.3", ["PUT /length digits=10000"], gives("2.04", b"10000"), scheme="q-block"),
    # After a lost request, PROBING_RATE of 1 byte/s allows the next one half a minute later.
    Feature("Q-Block2, with 10 % loss", Q_BLOCK, "RFC 9177 7.2", ["GET /medium wait=90"], gives("2.05", MEDIUM), mode="loss", scheme="q-block"),
    Feature("Q-Block1, with 10 % loss", Q_BLOCK, "RFC 9177 7.2", ["PUT /length digits=10000 wait=90"], gives("2.04", b"10000"), mode="loss", scheme="q-block"),
    Feature("GET", OSCORE, "RFC 8613 8", ["GET /test"], gives("2.05", TEST), scheme="oscore"),
    Feature("PUT", OSCORE, "RFC 8613 4.2", [f"PUT /echo payload={HI}"], gives("2.04", b"hi"), scheme="oscore"),
    Feature("Block2", OSCORE, "RFC 8613 4.1.3.4", ["GET /medium"], gives("2.05", MEDIUM), scheme="oscore"),
    Feature("Block1", OSCORE, "RFC 8613 4.1.3.4", ["PUT /length digits=10000"], gives("2.04", b"10000"), scheme="oscore"),
    Feature("observe", OSCORE, "RFC 8613 4.1.3.5", ["GET /time observe=3"], states(None), scheme="oscore"),
    Feature("new keys before the first request", OSCORE, "RFC 8613 B.2", ["GET /test"] * 2, gives("2.05", TEST), scheme="oscore-b2"),
    Feature("GET, with keys by EDHOC", OSCORE, "RFC 9528 5, RFC 9668 3", ["GET /test"] * 2, gives("2.05", TEST), scheme="edhoc"),
    Feature("GET, with keys by EDHOC and 10 % loss", OSCORE, "RFC 9528 5", ["GET /test wait=60"] * 4, gives("2.05", TEST), mode="loss", scheme="edhoc"),
    # libcoap's server repeats an answer whose acknowledgement was lost four times, gives it up after 62 to 93 s, and keeps back the next
    # one until then. The losses that the relay draws for Ebbtide's client and this server make that happen.
    Feature("GET, with 10 % loss", OSCORE, "RFC 8613 7.4", ["GET /test wait=100"] * 8, gives("2.05", TEST), mode="loss", scheme="oscore"),
    Feature("POST, once each, with 10 % loss", OSCORE, "RFC 8613 7.4", ["POST /count wait=60"] * 8, counts, mode="loss", scheme="oscore"),
    Feature("Block2, with 10 % loss", OSCORE, "RFC 8613 4.1.3.4", ["GET /medium wait=60"], gives("2.05", MEDIUM), mode="loss", scheme="oscore"),
]
