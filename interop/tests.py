#!/usr/bin/env python3
"""Tests of the runner: adapters that join, and adapters that crash, hang, print nothing or lie."""

import json
import os
import stat
import sys
import tempfile
import unittest
from pathlib import Path

INTEROP = Path(__file__).resolve().parent
sys.path.insert(0, str(INTEROP))
import run  # noqa: E402
from adapter import Adapter, Limits, read_adapters  # noqa: E402
from features import FEATURES  # noqa: E402
from history import badge, read_runs  # noqa: E402
from pairs import Pair, RawPair  # noqa: E402
from raw import RAW  # noqa: E402

LIMITS = Limits(start=10.0, request=1.0, more=1.0)
HASTY = LIMITS._replace(start=1.0)
GET = [feature for feature in FEATURES if feature.name == "GET" and feature.scheme == "coap" and feature.mode == "clean"]


class Runner(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name)
        self.example = read_adapters(INTEROP / "example/adapters.toml", self.out)["example"]

    def adapter(self, program: str) -> Adapter:
        """An adapter that is this Python program in both roles."""
        command = [sys.executable, "-c", program]
        return Adapter("bad", "bad", frozenset(), command, command, None)

    def cell(self, server: Adapter, client: Adapter, limits: Limits = LIMITS) -> dict:
        pair = Pair(server, client, self.out, limits)
        (result,) = pair.run(GET)["results"]
        self.assertIn(result["status"].upper(), (self.out / f"{pair.name}.log").read_text(), "the log has the cell")
        return result

    def client(self, program: str, limits: Limits = LIMITS) -> dict:
        return self.cell(self.example, self.adapter(program), limits)

    def assert_red(self, result: dict, status: str, reason: str) -> None:
        self.assertEqual(result["status"], status, result)
        self.assertIn(reason, result["reason"])

    def test_an_adapter_joins_by_an_entry_in_a_file_of_its_own(self) -> None:
        history = self.out / "history.jsonl"
        arguments = ["--adapters", str(INTEROP / "example/adapters.toml"), "--only", "example", "--out", str(self.out),
                     "--history", str(history), "--feature", "get"]
        for _ in range(2):
            self.assertEqual(run.main(arguments, LIMITS), 0)
        results = json.loads((self.out / "results.json").read_text())
        cells = {(cell["group"], cell["name"]): cell["status"] for cell in results["pairs"][0]["results"]}
        self.assertEqual(cells["methods and messages", "GET"], "pass")
        self.assertEqual(cells["TCP", "GET"], "unsupported")
        self.assertEqual(len(read_runs(history)), 2)
        page = (self.out / "index.html").read_text()
        self.assertIn("History", page)
        self.assertIn("badges/example.svg", page)
        self.assertIn("The example", (self.out / "badges/example.svg").read_text())

    def test_an_adapter_that_crashes_is_red(self) -> None:
        self.assert_red(self.client("raise SystemExit(3)"), "missing", "exit code 3")
        crash = "print('ready', flush=True); input(); raise SystemExit(3)"
        self.assert_red(self.client(crash), "fail", "the client has ended")
        self.assert_red(self.cell(self.adapter("raise SystemExit(3)"), self.example), "missing", "exit code 3")

    def test_a_client_that_does_not_start_in_one_mode_starts_in_the_next(self) -> None:
        once = self.out / "once"
        program = (
            f"import os, runpy\nif not os.path.exists({str(once)!r}): open({str(once)!r}, 'w'); raise SystemExit(3)\n"
            f"runpy.run_path({str(INTEROP / 'example/adapter.py')!r}, run_name='__main__')"
        )
        modes = [GET[0], GET[0]._replace(mode="loss", name="GET again")]
        results = Pair(self.example, self.adapter(program), self.out, LIMITS).run(modes)["results"]
        self.assert_red(results[0], "missing", "exit code 3")
        self.assertEqual(results[1]["status"], "pass", results)

    def test_an_adapter_that_hangs_is_red_and_does_not_outlive_its_cell(self) -> None:
        pid = self.out / "pid"
        hang = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); print('ready', flush=True); time.sleep(600)"
        self.assert_red(self.client(hang), "fail", "does not come back")
        with self.assertRaises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)

    def test_an_adapter_that_prints_nothing_is_red(self) -> None:
        self.assert_red(self.client("import time; time.sleep(600)", HASTY), "missing", "did not say `ready`")
        silent = "print('ready', flush=True)\nwhile True: input(); print('.', flush=True)"
        self.assert_red(self.client(silent), "fail", "no answer")

    def test_an_adapter_that_prints_without_end_is_red(self) -> None:
        flood = "print('ready', flush=True); input()\nwhile True: print('2.05 - -')"
        self.assert_red(self.client(flood), "fail", "more than 1000 answers")

    def test_an_adapter_that_prints_no_answers_of_the_contract_is_red(self) -> None:
        garbage = "print('ready', flush=True); input(); print('2.05 4:zz -', flush=True); input()"
        self.assert_red(self.client(garbage), "fail", "no answer: '2.05 4:zz -'")

    def test_a_client_that_claims_answers_without_asking_is_red(self) -> None:
        lie = "print('ready', flush=True)\nwhile True: input(); print('2.05 - ' + (b'0123456789' * 6).hex() + '\\n.', flush=True)"
        self.assert_red(self.client(lie), "fail", "sent no datagram")

    def test_a_lie_is_red_over_every_transport(self) -> None:
        lie = "print('ready', flush=True)\nwhile True: input(); print('2.05 - ' + (b'0123456789' * 6).hex() + '\\n.', flush=True)"
        silent = self.adapter("import time; print('ready', flush=True); time.sleep(600)")
        for scheme, said in [("coap6", "sent no datagram"), ("coap+tcp", "sent no byte")]:
            feature = GET[0]._replace(scheme=scheme)
            (result,) = Pair(silent, self.adapter(lie), self.out, LIMITS).run([feature])["results"]
            self.assert_red(result, "fail", said)

    def test_a_server_that_dies_of_a_datagram_is_red_and_is_started_again(self) -> None:
        fragile = self.adapter(
            "import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
            "s.bind((os.environ['INTEROP_HOST'], int(os.environ['INTEROP_PORT']))); print('ready', flush=True); s.recv(99)"
        )
        results = RawPair(fragile, self.out, LIMITS).run(RAW[:2])["results"]
        for result in results:
            self.assert_red(result, "fail", "the server died")

    def test_an_image_is_run_by_the_engine_and_ended_by_its_name(self) -> None:
        calls, engine = self.out / "calls", self.out / "engine"
        engine.write_text(f"#!/bin/sh\necho \"$@\" >>{calls}\n[ \"$1\" != run ] || exec {sys.executable} {INTEROP}/example/adapter.py\n")
        engine.chmod(engine.stat().st_mode | stat.S_IXUSR)
        os.environ["INTEROP_ENGINE"] = str(engine)
        self.addCleanup(os.environ.pop, "INTEROP_ENGINE")
        image = Adapter("image", "image", frozenset(), [], [], "example.org/coap:1")
        self.assertEqual(self.cell(image, self.example)["status"], "pass")
        started, ended = calls.read_text().splitlines()
        self.assertIn("--env INTEROP_ROLE", started)
        self.assertTrue(started.endswith("example.org/coap:1"))
        self.assertEqual(ended, f"kill {started.split('--name ')[1].split()[0]}")

    def test_an_entry_that_is_wrong_is_refused_with_its_name(self) -> None:
        file = self.out / "adapters.toml"
        for text, told in [
            ("[x]\nimage = 'a'\nserver = ['a']\nclient = ['a']", "either `image`"),
            ("[x]\nserver = ['a']", "either `image`"),
            ("[x]\nimage = 'a'\ntitel = 'a'", "no key titel"),
            ("[x]\nserver = ['{prot}']\nclient = ['a']", "the only places"),
            ("x = 1", "must be a table"),
        ]:
            file.write_text(text)
            with self.assertRaisesRegex(ValueError, "x") as raised:
                read_adapters(file, self.out)
            self.assertIn(told, str(raised.exception))

    def test_a_history_that_is_not_one_is_refused_before_the_run(self) -> None:
        history = self.out / "history.jsonl"
        history.write_text("no JSON\n")
        self.assertEqual(run.main(["--only", "libcoap", "--history", str(history)], LIMITS), 2)

    def test_a_badge_escapes_its_title(self) -> None:
        self.assertNotIn("<b>", badge("<b>", 1, 2))


if __name__ == "__main__":
    unittest.main()
