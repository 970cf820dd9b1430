"""Where the clients' time goes in a capture of CoAP over TCP, simulated or emulated.

    ebbtide replay nb-iot --cc tcp --set clients=100 --set buffer=2500 --pcap simulated.pcapng
    studies/scripts/emulator_tcp.sh EBBTIDE FOLDER 100 2500 continuous none 5
    studies/scripts/tcp_time.py CLIENTS CAPTURE...            needs tshark

Prints for each capture the average seconds per client that were spent
  syn       waiting to repeat a SYN
  open      in the rest of handshakes, until the first request leaves
  request   waiting to repeat a request: first timeouts, second ones, later ones
  response  the same for the server and responses
  trip      in the round trips of the copies that came through
and of the link to the clients: the share of segments that it dropped, of first copies and of repeated
ones, and how many of the repeated ones left the server within 5 ms of another.
"""

import collections
import statistics
import subprocess
import sys

FIELDS = ["frame.interface_name", "frame.time_relative", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport"]
FIELDS += ["tcp.flags.syn", "tcp.len", "tcp.seq_raw"]
# What a packet needs at least from one end to the other, s.
LEAST = {"up": 0.2, "down": 0.4}
# Bytes of nb-iot's messages: a request, which may follow the CSM in its segment; a response has more.
REQUEST = (8, 15)
RESPONSE = 60


def segments(capture: str):
    """(whether at the end that sends it, time, direction, connection, SYN, length, sequence number)"""
    command = ["tshark", "-Q", "-n", "-r", capture, "-d", "tcp.port==5683,data", "-Y", "tcp", "-T", "fields"]
    command += [part for field in FIELDS for part in ("-e", field)]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in lines.splitlines():
        place, time, source, target, sport, dport, syn, length, sequence = line.split("\t")
        direction = "up" if dport == "5683" else "down"
        sends = (place == "clients") == (direction == "up")
        connection = (source, sport) if direction == "up" else (target, dport)
        yield sends, float(time), direction, connection, syn in ("1", "True"), int(length), int(sequence)


class Copies:
    """The copies of a segment: when each left, and when it arrived if it did."""

    def __init__(self):
        self.left: list[float] = []
        self.arrived: dict[int, float] = {}

    def arrives(self, time: float, direction: str) -> None:
        possible = [n for n, left in enumerate(self.left) if left + LEAST[direction] <= time]
        if possible:
            self.arrived.setdefault(possible[-1], time)

    def winner(self) -> int | None:
        return min(self.arrived, key=lambda n: self.arrived[n], default=None)


def account(clients: int, capture: str) -> None:
    table: dict[tuple, Copies] = collections.defaultdict(Copies)
    for sends, time, direction, connection, syn, length, sequence in segments(capture):
        if not syn and length not in REQUEST and length < RESPONSE:
            continue
        copies = table[connection, direction, syn, sequence]
        if sends:
            copies.left.append(time)
        else:
            copies.arrives(time, direction)

    connections = collections.defaultdict(lambda: collections.defaultdict(list))
    for (connection, direction, syn, _), copies in table.items():
        connections[connection][direction, syn].append(copies)
    spent = collections.Counter()
    for of in connections.values():
        requests = sorted(of["up", False], key=lambda copies: copies.left[:1])
        responses = sorted(of["down", False], key=lambda copies: copies.left[:1])
        syns = [copies for copies in of["up", True] if copies.winner() is not None]
        if not requests or not syns:
            continue
        syn = syns[0]
        spent["syn"] += syn.left[syn.winner()] - syn.left[0]
        spent["open"] += requests[0].left[0] - syn.left[syn.winner()]
        for request, response in zip(requests, responses):
            if request.winner() is None or response.winner() is None:
                continue
            waited = 0.0
            for name, copies in (("request", request), ("response", response)):
                for n in range(copies.winner()):
                    wait = copies.left[n + 1] - copies.left[n]
                    # A copy that leaves while an earlier one is under way delays nothing.
                    spent[name, min(n, 2)] += wait
                    waited += wait
            spent["trip"] += response.arrived[response.winner()] - request.left[0] - waited

    print(capture)
    levels = {name: "+".join(f"{spent[name, n] / clients:.1f}" for n in range(3)) for name in ("request", "response")}
    print(
        f"  syn {spent['syn'] / clients:.1f}  open {spent['open'] / clients:.1f}  request {levels['request']}"
        f"  response {levels['response']}  trip {spent['trip'] / clients:.1f}"
        f"  sum {sum(spent.values()) / clients:.1f} s"
    )
    down = [copies for (_, direction, *_), copies in table.items() if direction == "down"]
    first = [0 in copies.arrived for copies in down if copies.left]
    again = [n in copies.arrived for copies in down for n in range(1, len(copies.left))]
    times = sorted(time for copies in down for time in copies.left[1:])
    near = [min(b - a, c - b) < 0.005 for a, b, c in zip(times, times[1:], times[2:])]
    share = lambda of: f"{1 - statistics.fmean(of):.1%}" if of else "-"
    together = f"{statistics.fmean(near):.0%}" if near else "-"
    print(
        f"  dropped on the way down: {share(first)} of {len(first)} first copies,"
        f" {share(again)} of {len(again)} repeated ones; of these {together} left together"
    )


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for capture in sys.argv[2:]:
        account(int(sys.argv[1]), capture)


if __name__ == "__main__":
    main()
