#!/usr/bin/env python3
"""Why messages were repeated in a low-power network, from a trace.

    ebbtide replay lln-cloud --set workload=burst --cc default --trace - | scripts/mesh_causes.py

For every timeout that expired: the fate of the copy whose answer it awaited, how long it had waited,
and the nodes at which most copies were lost. "Under way" is a copy that was neither lost nor answered
then: repeating it was early if it was answered in the end.
"""

import collections
import json
import sys


def main() -> None:
    fates = {}  # of a copy: (when, what)
    sent = collections.defaultdict(list)  # of an exchange: (when, timeout)
    failed = set()
    for line in sys.stdin:
        event = json.loads(line)
        exchange = (event["client"], event["exchange"])
        copy = (*exchange, event["ordinal"])
        what, is_probe = event["event"], event.get("probe")
        if what == "sent" and not is_probe:
            sent[exchange].append((event["t"], event["timeout_s"]))
        elif what == "lost" and not is_probe:
            way = "request" if event["direction"] == "up" else "response"
            fates[copy] = (event["t"], f"{way}: {event['cause']}", event["node"])
        elif what == "link" and event["fate"] != "delivered" and not is_probe:
            way = "request" if event["direction"] == "up" else "response"
            fates[copy] = (event["t"], f"{way}: {event['fate']} on the wired side", None)
        elif what == "arrived" and event["at"] == "client":
            fates[copy] = (event["t"], "arrived", None)
        elif what == "failed":
            failed.add(exchange)
    causes = collections.defaultdict(lambda: [0, 0.0, 0, collections.Counter()])
    expired = 0
    for exchange, copies in sent.items():
        waits = [(at, after) for (at, _), (after, _) in zip(copies, copies[1:])]
        if exchange in failed:
            waits.append((copies[-1][0], sum(copies[-1])))
        for ordinal, (at, until) in enumerate(waits):
            when, what, node = fates.get((*exchange, ordinal), (until, "under way at the end", None))
            if what == "arrived" or when > until:
                what = "under way, answered later" if what == "arrived" else "under way, lost later"
            entry = causes[what]
            entry[0] += 1
            entry[1] += until - at
            entry[2] += exchange in failed
            entry[3][node] += 1
            expired += 1
    waited = sum(entry[1] for entry in causes.values()) or 1.0
    print(f"{len(sent)} exchanges, {len(failed)} given up, {expired} timeouts expired, {waited:.0f} s waited")
    print(f"{'copy':40} {'timeouts':>9} {'%':>6} {'waited %':>9} {'given up':>9}  nodes")
    for what, (count, seconds, lost, nodes) in sorted(causes.items(), key=lambda item: -item[1][0]):
        most = ", ".join(f"{node}: {n}" for node, n in nodes.most_common(3) if node is not None)
        share = 100 * count / expired
        print(f"{what:40} {count:9} {share:6.1f} {100 * seconds / waited:9.1f} {lost:9}  {most}")


if __name__ == "__main__":
    main()
