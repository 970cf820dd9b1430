#!/usr/bin/env python3
"""Runs every server of interop/adapters.toml against every client, feature by feature.

    interop/run.py [--out DIR] [--adapters FILE]... [--only NAME,NAME] [--against NAME,NAME] [--feature TEXT] [--jobs N]
                   [--history FILE] [--publish FILE]

DIR (target/interop/matrix) receives index.html, results.json, a badge for each implementation, and for each pair a log and a
capture. README.md describes adapters.
"""

import argparse
import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

INTEROP = Path(__file__).resolve().parent
sys.path.insert(0, str(INTEROP / "matrix"))
from adapter import Adapter, Limits, read_adapters  # noqa: E402
from certificates import make_certificates  # noqa: E402
from features import FEATURES  # noqa: E402
from history import add_run, read_runs, totals, write_badges  # noqa: E402
from page import html, markdown  # noqa: E402
from pairs import Pair, RawPair  # noqa: E402
from raw import RAW  # noqa: E402

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", INTEROP.parent / "target")).resolve() / "interop"


def chosen(text: str, adapters: dict[str, Adapter]) -> list[str]:
    names = [name for name in text.split(",") if name]
    if unknown := [name for name in names if name not in adapters]:
        raise ValueError(f"there is no adapter {', '.join(unknown)}; there are {', '.join(adapters)}")
    return names


def main(given: list[str] | None = None, limits: Limits = Limits()) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TARGET / "matrix")
    parser.add_argument("--adapters", type=Path, action="append", default=[], help="a file with further adapters")
    parser.add_argument("--only", default="", help="names of implementations, separated by commas")
    parser.add_argument("--against", default="", help="only pairs with one of these: one's own adapter against all others")
    parser.add_argument("--feature", default="", help="features whose group or name contains this text")
    parser.add_argument("--jobs", type=int, default=10 * (os.cpu_count() or 2), help="pairs at once; they mostly wait")
    parser.add_argument("--history", type=Path, help="add this run to the file, and show the file's runs on the page")
    parser.add_argument("--publish", type=Path, help="write the page in Markdown")
    arguments = parser.parse_args(given)
    try:
        adapters: dict[str, Adapter] = {}
        for file in [INTEROP / "adapters.toml", *arguments.adapters]:
            adapters |= read_adapters(file, TARGET)
        names = chosen(arguments.only, adapters) or list(adapters)
        against = set(chosen(arguments.against, adapters) or names)
        features = [f for f in FEATURES if arguments.feature.lower() in f"{f.group} {f.name}".lower()]
        raw_features = [f for f in RAW if arguments.feature.lower() in f"raw datagrams {f.name}".lower()]
        if not features and not raw_features:
            raise ValueError(f"no feature contains '{arguments.feature}'")
        if arguments.history:
            read_runs(arguments.history)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    arguments.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    refused: set[tuple[str, str, str]] = set()
    pairs = [
        Pair(adapters[server], adapters[client], arguments.out, limits, refused)
        for server in names for client in names if {server, client} & against
    ]
    make_certificates(arguments.out / "certificates")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        raw_results = pool.map(lambda name: RawPair(adapters[name], arguments.out, limits).run(raw_features), names if raw_features else [])
        # Those with the most features first, so that none of them is alone at the end.
        longest_first = sorted(pairs, key=lambda pair: -pair.common_extensions())
        done = dict(zip((pair.name for pair in longest_first), pool.map(lambda pair: pair.run(features), longest_first)))
        results, raw = [done[pair.name] for pair in pairs], list(raw_results)
    titles = {name: adapters[name].title for name in names}
    now = totals(names, results, raw)
    write_badges(arguments.out / "badges", titles, now)
    runs = add_run(arguments.history, titles, now) if arguments.history else []
    (arguments.out / "results.json").write_text(json.dumps({"titles": titles, "totals": now, "pairs": results, "raw": raw}, indent=1))
    (arguments.out / "index.html").write_text(html(titles, features, results, raw_features, raw, runs))
    if arguments.publish:
        arguments.publish.write_text(markdown(titles, features, results, raw_features, raw))
    print(*slowest(results), sep="\n")
    runner, programs = (
        used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    print(f"{time.monotonic() - began:.0f} s; processor time of the adapters {programs:.0f} s, of the runner {runner:.0f} s")
    print(f"see {arguments.out / 'index.html'}")
    return 0


def slowest(results: list[dict]) -> list[str]:
    """The cells that took longest."""
    cells = [(cell.get("seconds", 0.0), f"{pair['server']}--{pair['client']}", cell) for pair in results for cell in pair["results"]]
    cells.sort(key=lambda each: -each[0])
    return [f"{seconds:6.1f} s  {name}: {cell['group']}, {cell['name']} ({cell['status']})" for seconds, name, cell in cells[:20]]


if __name__ == "__main__":
    sys.exit(main())
