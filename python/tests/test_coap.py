from __future__ import annotations

import asyncio
import copy
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import ebbtide
import pytest
from ebbtide import aio


def demo() -> tuple[ebbtide.Router, ebbtide.Resource]:
    router = ebbtide.Router()
    state = {"value": 0}
    counter = router.resource("/counter", observable=True, attributes={"rt": "counter"})

    @router.route("/counter")
    def read(call: ebbtide.Call) -> str:
        return str(state["value"])

    @router.route("/counter", "PUT")
    def write(call: ebbtide.Call) -> None:
        state["value"] = int(call.payload)
        counter.changed()

    @router.route("/hello/{name}")
    async def hello(call: ebbtide.Call) -> str:
        await asyncio.sleep(0.01)
        return f"Hello, {call.param('name')}{call.query.get('mark', '!')}"

    @router.route("/echo", "POST", "FETCH")
    def echo(call: ebbtide.Call) -> ebbtide.Reply:
        return ebbtide.reply(call.payload[::-1], format=42, max_age=5, etag=b"abc")

    @router.route("/long")
    def long(call: ebbtide.Call) -> bytes:
        return bytes(range(256)) * 40

    @router.route("/slow")
    async def slow(call: ebbtide.Call) -> str:
        await asyncio.sleep(30)
        return "late"

    @router.route("/broken")
    def broken(call: ebbtide.Call) -> str:
        raise RuntimeError("on purpose")

    @router.route("/number")
    def number(call: ebbtide.Call) -> str:
        return 3  # type: ignore[return-value]

    @router.route("/lamp", "DELETE")
    def remove(call: ebbtide.Call) -> ebbtide.Reply:
        return ebbtide.reply(code="2.02")

    return router, counter


@pytest.fixture
def base() -> Iterator[str]:
    router, _ = demo()
    with ebbtide.Server(router, "127.0.0.1:0") as server:
        yield server.addresses[0]


def test_a_client_that_waits_gets_what_the_handlers_give(base: str) -> None:
    client = ebbtide.Client()
    response = client.get(f"{base}/hello/World")
    assert (response.code, response.text, response.is_success) == ("2.05", "Hello, World!", True)
    assert client.get(f"{base}/hello/World?mark=?").text == "Hello, World?"
    echoed = client.post(f"{base}/echo", b"\x01\x02", format="application/octet-stream")
    assert (echoed.code, echoed.payload, echoed.content_format) == ("2.04", b"\x02\x01", 42)
    assert dict(echoed.options) == {4: b"abc", 12: b"\x2a", 14: b"\x05"}
    assert client.fetch(f"{base}/echo", "ab").payload == b"ba"
    assert client.get(f"{base}/long").payload == bytes(range(256)) * 40
    assert client.delete(f"{base}/lamp").code == "2.02"
    assert client.put(f"{base}/counter", "7").code == "2.04"
    assert client.get(f"{base}/counter", confirmable=False).text == "7"
    assert '</counter>;rt="counter";obs' in client.get(f"{base}/.well-known/core").text
    assert client.ping(base) is not None


def test_a_faulty_handler_is_answered_with_an_error_code(
    base: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = ebbtide.Client()
    assert client.get(f"{base}/broken").code == "5.00"
    assert "on purpose" in caplog.text
    assert client.get(f"{base}/number").code == "5.00"
    assert "payload: takes bytes or text, not int" in caplog.text
    assert client.get(f"{base}/nothing").code == "4.04"
    assert client.put(f"{base}/echo", "x").code == "4.05"
    assert client.put(f"{base}/counter", "x").code == "5.00"


def test_errors_raise_the_matching_python_exception(base: str) -> None:
    client = ebbtide.Client()
    with pytest.raises(ValueError, match="scheme"):
        client.get("http://127.0.0.1/")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectionRefusedError, match="no program listens"):
        client.get(f"coap://127.0.0.1:{port}/")
    with pytest.raises(TimeoutError, match="within the time given") as raised:
        client.get(f"{base}/slow", timeout=0.1)
    assert isinstance(raised.value, ebbtide.NoAnswer)
    with pytest.raises(TypeError, match=r"'timout' is not one of .*timeout"):
        client.get(base, timout=3)
    with pytest.raises(ValueError, match="timeout: -1"):
        client.get(base, timeout=-1.0)
    with pytest.raises(ValueError, match="format: 'jsn' is not known"):
        client.get(base, accept="jsn")
    with pytest.raises(TypeError, match="payload: takes bytes or text, not int"):
        client.put(base, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"control: .*fasr"):
        ebbtide.Client(control="fasr")
    with pytest.raises(ValueError, match=r"bind: '127\.0\.0\.1/x' is not an address"):
        ebbtide.Server(ebbtide.Router(), "127.0.0.1/x")
    with pytest.raises(OSError, match="in use"):
        ebbtide.Server(ebbtide.Router(), base.removeprefix("coap://"))
    assert client.get(f"{base}/counter").is_success


def test_ctrl_c_ends_a_request_within_a_second(base: str) -> None:
    program = (
        "import ebbtide\nprint('asking', flush=True)\n"
        f"try:\n    ebbtide.get('{base}/slow')\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "asking\n"
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert time.monotonic() - began < 1.0
    process.wait(10)


def test_states_that_are_observed_come_until_it_is_closed(base: str) -> None:
    client = ebbtide.Client()
    with client.observe(f"{base}/counter") as states:
        assert next(states).text == "0"
        for value in ("1", "2", "3"):
            client.put(f"{base}/counter", value)
            assert next(states).text == value
    with pytest.raises(StopIteration):
        next(states)


def test_threads_share_a_client(base: str) -> None:
    client = ebbtide.Client(nstart=8)
    seen: list[str] = []

    def ask(number: int) -> None:
        seen.append(client.get(f"{base}/hello/{number}").text)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [f"Hello, {number}!" for number in range(8)]


def test_coroutines_ask_many_things_at_once() -> None:
    async def main() -> None:
        router, _ = demo()
        async with aio.Server(router, "127.0.0.1:0") as server:
            (base,) = server.addresses
            client = aio.Client(nstart=64)
            asked = [client.get(f"{base}/hello/{number}") for number in range(200)]
            answers = await asyncio.gather(*asked)
            assert [a.text for a in answers] == [f"Hello, {n}!" for n in range(200)]
            assert (await client.ping(base)) is not None
            with pytest.raises(ebbtide.NoAnswer):
                await client.get(f"{base}/slow", timeout=0.1)

    asyncio.run(main())


def test_a_request_that_is_cancelled_ends_its_exchange() -> None:
    async def main() -> None:
        router, _ = demo()
        async with aio.Server(router, "127.0.0.1:0") as server:
            (base,) = server.addresses
            client = aio.Client()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.get(f"{base}/slow"), 0.1)
            await asyncio.sleep(0.05)
            assert client._native.open_exchanges() == 0
            assert (await client.get(f"{base}/counter")).text == "0"

    asyncio.run(main())


async def all_hear_of_a_change(
    observed: list[aio.Observation],
    counter: ebbtide.Resource,
    registrations: int,
    writer: tuple[aio.Client, str],
) -> None:
    first = await asyncio.gather(*(anext(one) for one in observed))
    assert {state.text for state in first} == {"0"}
    assert counter.subject is not None and counter.subject.observers == registrations
    coming = [asyncio.ensure_future(anext(one)) for one in observed]
    client, base = writer
    await client.put(f"{base}/counter", "5")
    second = await asyncio.wait_for(asyncio.gather(*coming), 60)
    assert {state.text for state in second} == {"5"}
    for one in observed:
        one.close()


def test_a_thousand_observations_in_one_process_all_hear_of_a_change() -> None:
    async def main() -> None:
        router, counter = demo()
        async with aio.Server(router, "127.0.0.1:0") as server:
            (base,) = server.addresses
            clients = [aio.Client(nstart=64) for _ in range(20)]
            # Each query is a target resource, so that none of them shares a registration.
            targets = [f"{base}/counter?reader={index}" for index in range(1000)]
            observed = [clients[index % 20].observe(target) for index, target in enumerate(targets)]
            await all_hear_of_a_change(observed, counter, 1000, (clients[0], base))

    asyncio.run(main())


def test_observations_of_one_resource_by_one_client_share_a_registration() -> None:
    async def main() -> None:
        router, counter = demo()
        async with aio.Server(router, "127.0.0.1:0") as server:
            (base,) = server.addresses
            client = aio.Client()
            observed = [client.observe(f"{base}/counter") for _ in range(50)]
            await all_hear_of_a_change(observed, counter, 1, (client, base))

    asyncio.run(main())


def test_an_observation_is_an_asynchronous_iterator() -> None:
    async def main() -> list[str]:
        router, _ = demo()
        seen = []
        async with aio.Server(router, "127.0.0.1:0") as server:
            (base,) = server.addresses
            client = aio.Client()
            async for state in client.observe(f"{base}/counter"):
                seen.append(state.text)
                if len(seen) == 3:
                    break
                await client.put(f"{base}/counter", str(10 * len(seen)))
        return seen

    assert asyncio.run(main()) == ["0", "10", "20"]


def test_the_same_client_serves_one_loop_after_the_other(base: str) -> None:
    client = aio.Client()

    async def ask() -> str:
        return (await client.get(f"{base}/counter")).text

    assert [asyncio.run(ask()) for _ in range(3)] == ["0", "0", "0"]


def certificate() -> tuple[bytes, bytes]:
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ebbtide test")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(pem), private


def test_tls_is_spoken_with_whom_the_certificate_vouches_for() -> None:
    chain, key = certificate()
    router, _ = demo()
    with ebbtide.Server(
        router, "coaps+tcp://127.0.0.1:0", "coap+tcp://127.0.0.1:0", certificate=chain, key=key
    ) as server:
        tls, tcp = server.addresses
        assert ebbtide.Client(ca=chain).get(f"{tls}/hello/TLS").text == "Hello, TLS!"
        assert ebbtide.Client().get(f"{tcp}/hello/TCP").text == "Hello, TCP!"
        with pytest.raises(ConnectionError, match="TLS handshake failed"):
            ebbtide.Client().get(f"{tls}/counter", timeout=5)
        assert ebbtide.Client(insecure=True).get(f"{tls}/counter").text == "0"
    with pytest.raises(ValueError, match="certificate"):
        ebbtide.Client(ca=b"nothing")
    with pytest.raises(ValueError, match="need certificate and key"):
        ebbtide.Server(router, "coaps+tcp://127.0.0.1:0")


def test_an_observer_is_notified_by_the_server_that_takes_the_place_of_the_first(
    tmp_path: Path,
) -> None:
    router, counter = demo()
    state = tmp_path / "state"
    server = ebbtide.Server(router, "127.0.0.1:0", state=state)
    base = server.addresses[0]
    with ebbtide.Client().observe(f"{base}/counter") as states:
        assert next(states).text == "0"
        deadline = time.monotonic() + 10
        while not state.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        server.close()
        assert state.stat().st_size > 0
        again, counter = demo()
        port = base.rpartition(":")[2]
        with ebbtide.Server(again, f"127.0.0.1:{port}", state=str(state)):
            assert counter.subject is not None and counter.subject.observers == 1
            ebbtide.Client().put(f"{base}/counter", "7")
            assert next(one.text for one in states if one.text != "0") == "7"


@pytest.mark.skipif(sys.platform != "linux", reason="the system divides peers on Linux only")
def test_workers_share_an_address() -> None:
    router, _ = demo()
    with ebbtide.Server(router, "127.0.0.1:0", workers=2) as server:
        base = server.addresses[0]
        texts = [ebbtide.Client().get(f"{base}/hello/{n}").text for n in range(8)]
        assert texts == [f"Hello, {n}!" for n in range(8)]


def test_wrong_settings_of_a_server_are_named() -> None:
    router, _ = demo()
    with pytest.raises(ValueError, match="workers: must be from 1"):
        ebbtide.Server(router, "127.0.0.1:0", workers=0)
    with pytest.raises(TypeError, match="workers: takes a whole number"):
        ebbtide.Server(router, "127.0.0.1:0", workers="2")
    with pytest.raises(TypeError, match="expected str, bytes"):
        ebbtide.Server(router, "127.0.0.1:0", state=3)


def test_a_request_is_a_coroutine_for_tasks_and_task_groups(base: str) -> None:
    async def main() -> list[str]:
        client = aio.Client()
        task = asyncio.create_task(client.get(f"{base}/hello/a"))
        async with asyncio.TaskGroup() as group:
            other = group.create_task(client.get(f"{base}/hello/b"))
            pinged = group.create_task(client.ping(base))
        assert pinged.result() is not None
        return [(await task).text, other.result().text]

    assert asyncio.run(main()) == ["Hello, a!", "Hello, b!"]
    assert asyncio.run(aio.Client().get(f"{base}/hello/c")).text == "Hello, c!"


def test_a_task_that_is_cancelled_ends_its_exchange(base: str) -> None:
    async def main() -> None:
        client = aio.Client()
        task = asyncio.create_task(client.get(f"{base}/slow"))
        while client._native.open_exchanges() == 0:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while client._native.open_exchanges() > 0:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 20))


FORKED = """
import os, sys, ebbtide
client = ebbtide.Client()
assert client.get(sys.argv[1]).text == "0"
child = os.fork()
text = client.get(sys.argv[1], timeout=20).text
if child == 0:
    os._exit(0 if text == "0" else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or text != "0")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_client_that_was_used_before_a_fork_works_in_both_processes(base: str) -> None:
    subprocess.run([sys.executable, "-c", FORKED, f"{base}/counter"], check=True, timeout=60)


def test_a_response_is_pickled_copied_and_made() -> None:
    made = ebbtide.Response("2.05", b"21.5", [(14, b"\x3c"), (12, b"\x32")])
    for other in (pickle.loads(pickle.dumps(made)), copy.copy(made)):
        assert (other.code, other.payload, other.content_format) == ("2.05", b"21.5", 50)
        assert other.options == made.options
    assert ebbtide.Response.__module__ == "ebbtide"


def test_certificates_may_be_text() -> None:
    chain, key = certificate()
    router, _ = demo()
    with ebbtide.Server(
        router, "coaps+tcp://127.0.0.1:0", certificate=chain.decode(), key=key.decode()
    ) as server:
        (tls,) = server.addresses
        assert ebbtide.Client(ca=chain.decode()).get(f"{tls}/counter").text == "0"
    with pytest.raises(TypeError, match="ca: takes bytes or text, not int"):
        ebbtide.Client(ca=3)  # type: ignore[arg-type]


def test_a_closed_client_says_so(base: str) -> None:
    with ebbtide.Client() as client:
        assert client.get(f"{base}/counter").text == "0"
    with pytest.raises(RuntimeError, match="the client is closed"):
        client.get(f"{base}/counter")


CLOSED = """
import asyncio, ebbtide
router = ebbtide.Router()
@router.route("/slow")
async def slow(call):
    await asyncio.sleep(60)
with ebbtide.Server(router, "127.0.0.1:0") as server:
    try:
        ebbtide.get(server.addresses[0] + "/slow", timeout=1)
    except TimeoutError:
        pass
"""


def test_a_server_that_closes_lets_its_handlers_end() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CLOSED], check=True, timeout=60, capture_output=True, text=True
    )
    assert ended.stderr == ""
