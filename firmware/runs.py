"""The runs: what device and host do with each other, and what must come out."""

import concurrent.futures
import random
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import instants
from build import ROOT, Images
from device import KILLED, TERMINATED, Device, End, Failed, Host, call, ebbtide_server, libcoap_server, on_ethernet, on_serial_line
from relay import Fate, Relay, SerialRelay, UdpRelay

SERIAL = "thumbv7m-none-eabi serial"
ETHERNET = "thumbv7m-none-eabi ethernet"
GETS = 20
# Bytes of the heap for what a server remembers of requests that it must not process twice.
REMEMBERED = 4096
Figures = dict[str, int]
Run = Callable[[Host, Images], Figures]


def expect(figures: Figures, **wanted: int) -> Figures:
    """The figures, if these are among them."""
    for name, number in wanted.items():
        if figures.get(name) != number:
            raise Failed(f"{name} is {figures.get(name)}, not {number}: {figures}")
    return figures


def after_gets(device: Device, relay: Relay) -> None:
    """Bodies in blocks need a hundred messages: fewer losses save time."""
    device.wait_for("delivered")
    relay.fate.loss /= 3


def asking(program: str, board: str = SERIAL, gets: int = GETS, **wanted: int) -> Run:
    """A client on a serial line asks Ebbtide's server."""

    def run(host: Host, images: Images) -> Figures:
        with ebbtide_server(host) as port:
            arguments = {"port": port, "retransmit": 12, "gets": gets}
            with on_serial_line(images[board, program], host.fate(), host.seed, arguments) as (device, relay):
                after_gets(device, relay)
                return expect(device.finish(), delivered=gets, **wanted)

    return run


def asking_libcoap(program: str) -> Run:
    def run(host: Host, images: Images) -> Figures:
        with libcoap_server() as port:
            arguments = {"port": port, "retransmit": 12, "gets": GETS, "put": "example_data"}
            with on_serial_line(images[SERIAL, program], host.fate(), host.seed, arguments) as (device, relay):
                after_gets(device, relay)
                return expect(device.finish(), delivered=GETS, failed=0, put_code=65, put_echoed=3000, states=3)

    return run


def asking_by_ethernet(host: Host, images: Images) -> Figures:
    with ebbtide_server(host) as port:
        relay = UdpRelay(("127.0.0.1", port), host.fate(), host.seed)
        with on_ethernet(images[ETHERNET, "observe"], {"port": relay.port, "retransmit": 12}) as (device, _):
            after_gets(device, relay)
            figures = expect(device.finish(), delivered=GETS, failed=0, put_code=68, put_echoed=3000, states=3)
        figures["lost"] = relay.close().lost
        return figures


@contextmanager
def key_file() -> Iterator[str]:
    """The key of the devices, for `--psk-file`."""
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        keys.write_text("device:secret-of-device\n")
        keys.chmod(0o600)
        yield str(keys)


def secure(board: str, program: str = "secure", gets: int = GETS) -> Run:
    def run(host: Host, images: Images) -> Figures:
        with key_file() as keys, ebbtide_server(host, "--psk-file", keys) as port:
            fate = host.fate()
            if board != ETHERNET:
                arguments = {"port": port, "retransmit": 12, "gets": gets}
                with on_serial_line(images[board, program], fate, host.seed, arguments) as (device, _):
                    return expect(device.finish(), established=1, delivered=gets, failed=0)
            relay = UdpRelay(("127.0.0.1", port), fate, host.seed)
            with on_ethernet(images[board, program], {"port": relay.port, "retransmit": 12}) as (device, _):
                figures = expect(device.finish(), established=1, delivered=GETS, failed=0)
            relay.close()
            return figures

    return run


def restarting(end: End) -> Run:
    """The server restarts while it is asked, and knows nothing of the session afterwards."""

    def run(host: Host, images: Images) -> Figures:
        with key_file() as keys, ExitStack() as servers:
            port = servers.enter_context(ebbtide_server(host, "--psk-file", keys, end=end))
            arguments = {"port": port, "retransmit": 12, "gets": GETS}
            with on_serial_line(images[SERIAL, "device-secure"], host.fate(), host.seed, arguments) as (device, relay):
                relay.wait_for(40)
                servers.close()
                servers.enter_context(ebbtide_server(host, "--psk-file", keys, port=port))
                return expect(device.finish(), established=1, delivered=GETS, failed=0)

    return run


def ask_for_ticks(command: list[str]) -> None:
    """Twenty clients at a time, since each may take a minute."""
    with concurrent.futures.ThreadPoolExecutor(GETS) as clients:
        for answer in clients.map(call, [command] * GETS):
            if not answer.strip().isdigit():
                raise Failed(f"{command[0]} received '{answer}'")


def protected(host: Host, images: Images) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder) / "contexts.toml"
        secret = b"secret-of-device".hex()
        context.write_text(f'[[context]]\nsender-id = "02"\nrecipient-id = "01"\nmaster-secret = "{secret}"\n')
        context.chmod(0o600)
        with ebbtide_server(host, "--oscore", str(context)) as port:
            with on_serial_line(images[SERIAL, "protected"], host.fate(), host.seed, {"port": port, "retransmit": 12}) as (device, _):
                return expect(device.finish(), delivered=GETS, failed=0)


def ask(host: Host, relay: SerialRelay | UdpRelay) -> None:
    """All that Ebbtide asks a server on a device."""
    at = f"coap://127.0.0.1:{relay.port}"
    ebbtide, patience = str(host.ebbtide), ["-B", "120", "--cc", "fasor-token"]
    ask_for_ticks([ebbtide, "get", f"{at}/ticks", *patience])
    relay.fate.loss /= 3
    with tempfile.NamedTemporaryFile() as body:
        body.write(bytes(range(256)) * 7)
        body.flush()
        call([ebbtide, "put", f"{at}/led", "-f", body.name, "-b", "256", *patience])
        call([ebbtide, "get", f"{at}/led", "-o", f"{body.name}.back", *patience])
        back = Path(f"{body.name}.back")
        if back.read_bytes() != bytes(range(256)) * 7:
            raise Failed("the body came back changed")
        back.unlink()
    states = call([ebbtide, "observe", f"{at}/ticks", "--count", "5", "--cc", "fasor-token"]).split()
    if len(states) != 5 or states != sorted(states, key=int):
        raise Failed(f"states {states}")


def end(host: Host, relay: SerialRelay | UdpRelay, device: Device) -> Figures:
    """Asks the device to end, and loses nothing more."""
    relay.fate.loss = 0
    # The device may be gone before its answer has left the serial line.
    asking = subprocess.Popen([str(host.ebbtide), "put", f"coap://127.0.0.1:{relay.port}/end"], stderr=subprocess.DEVNULL)
    try:
        return device.finish()
    finally:
        asking.kill()
        asking.wait()


def serving(board: str, program: str = "server") -> Run:
    """Ebbtide's commands ask a server on a serial line."""

    def run(host: Host, images: Images) -> Figures:
        with on_serial_line(images[board, program], host.fate(), host.seed, {}) as (device, relay):
            device.wait_for("serving")
            ask(host, relay)
            return end(host, relay, device)

    return run


def serving_libcoap(program: str) -> Run:
    def run(host: Host, images: Images) -> Figures:
        with on_serial_line(images[SERIAL, program], host.fate(), host.seed, {}) as (device, relay):
            device.wait_for("serving")
            ask_for_ticks(["coap-client-notls", "-B", "100", f"coap://127.0.0.1:{relay.port}/ticks"])
            return end(host, relay, device)

    return run


def serving_by_ethernet(host: Host, images: Images) -> Figures:
    with on_ethernet(images[ETHERNET, "server"], {}) as (device, port):
        relay = UdpRelay(("127.0.0.1", port), host.fate(), host.seed)
        device.wait_for("serving")
        ask(host, relay)
        figures = end(host, relay, device)
        figures["lost"] = relay.close().lost
        return figures


def heap(host: Host, relay: SerialRelay) -> int:
    return int(call([str(host.ebbtide), "get", f"coap://127.0.0.1:{relay.port}/heap"]))


def strangers(program: str) -> Run:
    """Datagrams that are not CoAP, or hardly: the fuzz targets' seeds, and what is left of messages after changes by a seed."""

    def run(host: Host, images: Images) -> Figures:
        rng = random.Random(host.seed)
        seeds = [path.read_bytes() for path in sorted((ROOT.parent / "fuzz/seeds").rglob("*")) if path.is_file()]
        asked = bytes.fromhex("40010001b5") + b"ticks", bytes.fromhex("420300027e7e") + b"\xb3led\xd1\x0e\x0e\xff1"
        for _ in range(200):
            message = bytearray(rng.choice(asked))
            for _ in range(rng.randint(1, 4)):
                message[rng.randrange(len(message))] = rng.randrange(256)
            seeds.append(bytes(message[: rng.randint(1, len(message))]))
        with on_serial_line(images[SERIAL, program], Fate(), host.seed, {}) as (device, relay):
            device.wait_for("serving")
            before = heap(host, relay)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                for datagram in seeds:
                    # The device's buffer is shorter, which is another case.
                    stranger.sendto(datagram[:1400], ("127.0.0.1", relay.port))
                    time.sleep(0.02)
            after = heap(host, relay)
            # Messages are remembered for EXCHANGE_LIFETIME, 16 at most; the rest leaves nothing.
            if after > before + REMEMBERED:
                raise Failed(f"{after} bytes of the heap in use, {before} before")
            figures = end(host, relay, device)
            if not figures["malformed"]:
                raise Failed(f"nothing was malformed: {figures}")
            return figures

    return run


def at_the_instants_of_the_simulator(host: Host, images: Images) -> Figures:
    return instants.compare(host, images[SERIAL, "instants"])


IMC, IMAC, M0, M4 = (f"{target} serial" for target in (
    "riscv32imc-unknown-none-elf", "riscv32imac-unknown-none-elf", "thumbv6m-none-eabi", "thumbv7em-none-eabi"
))

# Of a change.
RUNS: dict[str, Run] = {
    "control": asking("control"),
    "instants": at_the_instants_of_the_simulator,
    "device-message": asking("device-message", failed=0),
    "device-blocks": asking("device-blocks", failed=0, put_code=68, put_echoed=3000),
    "device-observe": asking("device-observe", failed=0, put_code=68, put_echoed=3000, states=3),
    "device-server": serving(SERIAL, "device-server"),
    "device-server for libcoap": serving_libcoap("device-server"),
    "device-server, strangers": strangers("device-server"),
    "observe": asking("observe", failed=0, put_code=68, put_echoed=3000, states=3),
    "device-secure": secure(SERIAL, "device-secure"),
    "device-secure, server killed": restarting(KILLED),
    "protected": protected,
    "server": serving(SERIAL),
    "strangers": strangers("server"),
    "libcoap's server": asking_libcoap("device-observe"),
    # Their serial lines have no queue.
    "Cortex-M0": asking("message", M0, gets=5, failed=0),
    "RV32IMC": asking("observe", IMC, failed=0, put_code=68, put_echoed=3000, states=3),
    "server by Ethernet": serving_by_ethernet,
}
# The others.
MORE_RUNS: dict[str, Run] = {
    "message": asking("message", failed=0),
    "blocks": asking("blocks", failed=0, put_code=68, put_echoed=3000),
    "secure": secure(SERIAL),
    "device-secure, server restarted": restarting(TERMINATED),
    "server for libcoap": serving_libcoap("server"),
    "observe, libcoap's server": asking_libcoap("observe"),
    "Cortex-M0, DTLS": secure(M0, gets=5),
    "Cortex-M0, fixed tables": asking("device-observe", M0, gets=5, failed=0, put_code=68, put_echoed=3000, states=3),
    "Cortex-M4": asking("message", M4, gets=5, failed=0),
    "RV32IMC, fixed tables": asking("device-observe", IMC, failed=0, put_code=68, put_echoed=3000, states=3),
    "RV32IMC, server": serving(IMC),
    "RV32IMC, server in fixed tables": serving(IMC, "device-server"),
    "RV32IMAC": asking("observe", IMAC, failed=0, put_code=68, put_echoed=3000, states=3),
    "observe by Ethernet": asking_by_ethernet,
    "secure by Ethernet": secure(ETHERNET),
}
