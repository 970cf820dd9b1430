"""Runs aiocoap's own tests of servers, observation and block-wise transfer against a server of Ebbtide's.

    target/interop/aiocoap/bin/python interop/aiocoap/own_tests.py [--fetch | NAME ...]

The tests come from aiocoap's source distribution, which pip downloads; the helpers that it leaves out are
written here. The server is the example `aiocoap_site`. interop/README.md names the tests that do not apply.
"""

import asyncio
import functools
import logging
import os
import socket
import subprocess
import sys
import tarfile
import types
import unittest
from pathlib import Path

INTEROP = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", INTEROP.parent / "target")).resolve()
SERVER = TARGET / "debug/examples/aiocoap_site"
VERSION = "0.4.17"
MODULES = ["test_server", "test_observe", "test_blockwise"]
# Why a test does not apply to a server that is not aiocoap's.
SKIPPED = {
    "test_server_hints": "asks for a block size that a handler sets for one response; ours is the server's",
    "test_notreally": "asks for a handler that refuses an observation and answers with success",
}


def sources() -> Path:
    """The folder of aiocoap's tests."""
    place = TARGET / "interop/aiocoap-tests"
    unpacked = place / f"aiocoap-{VERSION}"
    if not unpacked.exists():
        place.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*command, "--dest", str(place), f"aiocoap=={VERSION}"], check=True)
        with tarfile.open(place / f"aiocoap-{VERSION}.tar.gz") as archive:
            archive.extractall(place, filter="data")
    return unpacked / "tests"


class Records(logging.Handler, list):
    """What was logged, with its arguments put in."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        list.__init__(self)

    def emit(self, record: logging.LogRecord) -> None:
        record.msg = record.getMessage()
        record.args = ()
        self.append(record)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class Destructing(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.handler = Records()
        logging.root.setLevel(logging.DEBUG)
        logging.root.addHandler(self.handler)

    def tearDown(self) -> None:
        logging.root.removeHandler(self.handler)
        super().tearDown()

    async def _del_to_be_sure(self, attribute: str | dict) -> None:
        if isinstance(attribute, dict):
            attribute["del"](self)
        else:
            delattr(self, attribute)


def no_warnings(test):
    if not asyncio.iscoroutinefunction(test):
        return test

    @functools.wraps(test)
    async def checked(self, *arguments):
        result = await test(self, *arguments)
        warnings = [r for r in self.handler if r.levelno >= logging.WARNING and r.name.startswith("coap")]
        self.assertEqual([], [warning.msg for warning in warnings])
        return result

    return checked


def helpers() -> None:
    """The modules of the tests' package that the source distribution lacks."""
    package = types.ModuleType("tests")
    package.__path__ = [str(sources())]
    fixtures = types.ModuleType("tests.fixtures")
    fixtures.no_warnings = no_warnings
    fixtures.Destructing = Destructing
    fixtures.CLEANUPTIME = 0.01
    common = types.ModuleType("tests.common")
    common.loopbackname_v6 = common.loopbackname_v46 = None
    common.tcp_disabled = False
    # Its tests of WebSockets name aiocoap's own port.
    common.ws_disabled = True
    common.run_fixture_as_standalone_server = None
    package.fixtures, package.common = fixtures, common
    sys.modules.update({"tests": package, "tests.fixtures": fixtures, "tests.common": common})


def free_port() -> int:
    while True:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as made:
            made.bind(("::1", 0))
            port = made.getsockname()[1]
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as made:
            try:
                made.bind(("::1", port))
                return port
            except OSError:
                continue


def point_at_ours(fixture: type) -> None:
    """Each test has a server of its own, as with aiocoap's."""

    async def start(self) -> None:
        await super(fixture, self).asyncSetUp()
        port = free_port()
        self.servernetloc = f"[::1]:{port}"
        ours = subprocess.Popen([SERVER, self.servernetloc], stdout=subprocess.PIPE)
        self.addCleanup(ours.stdout.close)
        self.addCleanup(ours.wait)
        self.addCleanup(ours.kill)
        await asyncio.to_thread(ours.stdout.readline)

    async def stop(self) -> None:
        await super(fixture, self).asyncTearDown()

    fixture.asyncSetUp = start
    fixture.asyncTearDown = stop


def wait_for_notifications(case: type) -> None:
    """A state arrives some time after the answer to the request that made it (RFC 7641, section 1.3), where aiocoap's own
    server sends both from one turn of its loop and a test reads the state at once."""
    change = case._change_counter

    async def changed(self, *arguments, **options) -> None:
        await change(self, *arguments, **options)
        await asyncio.sleep(0.3)

    case._change_counter = changed


def chosen(suite: unittest.TestSuite, names: list[str]):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, names)
            continue
        method = test.id().rsplit(".", 1)[1]
        if reason := SKIPPED.get(method):
            setattr(test, method, unittest.skip(reason)(getattr(test, method)))
        if not names or any(name in test.id() for name in names):
            yield test


def main() -> int:
    if sys.argv[1:] == ["--fetch"]:
        sources()
        return 0
    if not SERVER.exists():
        print("build the server first: cargo build -p ebbtide --example aiocoap_site", file=sys.stderr)
        return 2
    helpers()
    import importlib

    modules = [importlib.import_module(f"tests.{name}") for name in MODULES]
    point_at_ours(modules[0].WithTestServer)
    wait_for_notifications(modules[1].TestObserve)
    loader = unittest.defaultTestLoader
    # Classes that one module imports from another run once.
    own = {
        value for module in modules for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, unittest.TestCase)
    }
    suites = [loader.loadTestsFromTestCase(case) for case in sorted(own, key=lambda case: case.__name__)]
    tests = unittest.TestSuite(chosen(unittest.TestSuite(suites), sys.argv[1:]))
    result = unittest.TextTestRunner(verbosity=2).run(tests)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
