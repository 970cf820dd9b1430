#!/usr/bin/env python3
"""The four questions of studies/four-questions.md, answered by ebbtide and by a model of its own: a FIFO queue with tail
drop in each direction and the timers of RFC 7252, in the standard library alone. Fails where they disagree.

    python3 studies/scripts/four_questions.py target/release/ebbtide
"""

import heapq
import json
import random
import subprocess
import sys

RTT_DELAY = (0.050, 0.090)  # one way, s


class Link:
    """A rate, a buffer for what waits, a uniform delay, and independent losses."""

    def __init__(self, rate: float, buffer: float, loss: float, rng: random.Random) -> None:
        self.rate, self.buffer, self.loss, self.rng = rate / 8, buffer, loss, rng
        self.free, self.starts = 0.0, []

    def send(self, now: float, size: int) -> float | None:
        """The instant of arrival; None if the packet is dropped or lost."""
        self.starts = [one for one in self.starts if one > now]
        if self.free > now and (len(self.starts) + 1) * size > self.buffer:
            return None
        start = max(now, self.free)
        if start > now:
            self.starts.append(start)
        self.free = start + size / self.rate
        if self.rng.random() < self.loss:
            return None
        return self.free + self.rng.uniform(*RTT_DELAY)


def simulate(requests: list[list[float]], rate: float, buffer: float, loss: float, sizes: tuple[int, int], seed: int) -> dict:
    """Devices whose requests are due at these instants, one in flight at a time. Returns times and counts."""
    rng = random.Random(seed)
    up, down = (Link(rate, buffer, loss, rng) for _ in range(2))
    events, serial, sent, needless = [], 0, 0, 0
    waiting = [[] for _ in requests]
    open_: list[list | None] = [None for _ in requests]
    times, failed = [], 0

    def push(at: float, what: str, device: int, data: object) -> None:
        nonlocal serial
        serial += 1
        heapq.heappush(events, (at, serial, what, device, data))

    def transmit(now: float, device: int) -> None:
        nonlocal sent
        one = open_[device]
        sent += 1
        one[2] += 1
        arrival = up.send(now, sizes[0])
        if arrival is not None:
            push(arrival, "server", device, (one[0], one[2]))
        push(now + one[3], "timer", device, (one[0], one[2]))
        one[3] *= 2

    def begin(now: float, device: int) -> None:
        if open_[device] is None and waiting[device]:
            due = waiting[device].pop(0)
            # Its number, the instant at which it was due, transmissions, the next timeout.
            open_[device] = [serial, due, 0, rng.uniform(2, 3)]
            transmit(now, device)

    for device, instants in enumerate(requests):
        for at in instants:
            push(at, "due", device, None)
    while events:
        now, _, what, device, data = heapq.heappop(events)
        if what == "due":
            waiting[device].append(now)
            begin(now, device)
        elif what == "server":
            arrival = down.send(now, sizes[1])
            if arrival is not None:
                push(arrival, "answer", device, data)
        elif what == "answer":
            one = open_[device]
            if one is not None and one[0] == data[0]:
                times.append((one[1], now - one[1]))
                needless += one[2] - data[1]
                open_[device] = None
                begin(now, device)
        elif open_[device] is not None and open_[device][0] == data[0] and open_[device][2] == data[1]:
            if data[1] > 4:
                failed += 1
                open_[device] = None
                begin(now, device)
            else:
                transmit(now, device)
    return {"times": times, "failed": failed, "sent": sent, "needless": needless}


def ebbtide(program: str, arguments: list[str]) -> dict:
    out = subprocess.run([program, "run", *arguments, "--json"], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def compare(what: str, ours: float, model: float, tolerance: float) -> bool:
    off = abs(ours - model) / max(abs(model), 1e-12)
    print(f"  {what}: ebbtide {ours:.5g}, model {model:.5g} ({off:.2%}, at most {tolerance:.0%})")
    return off <= tolerance


def alarms(program: str) -> bool:
    """Twenty alarms a quarter of an hour on a link that loses 10 % each way: the first three copies come in time."""
    print("Which control lets 99.5 % of the alarms through within 10 s, at least energy?")
    settings = ["class.alarms.workload.deadline=10 s", "class.alarms.require.in_time=0.995", "errors=low", "errors.low.average=0.1",
                "alarms=200", "class.alarms.workload.exchanges=20", "meters=100"]
    arguments = [word for one in settings for word in ("--set", one)]
    document = ebbtide(program, ["alarms", *arguments, "--cc", "default,cocoa,fasor-token,ebb"])
    success = 0.9 * 0.9
    cells = {cell["cc"]: cell for cell in document["cells"]}
    own = {cc: next(one for one in cell["requirements"] if one.get("class") == "alarms") for cc, cell in cells.items()}
    right = compare("share of default in time", own["default"]["found"], 1 - (1 - success) ** 3, 0.002)
    # Whatever the timers are, a delivered exchange takes 1/p transmissions where nothing is congested.
    chosen = document["settings"][0]["verdict"]["choose"]
    right &= compare(f"transmissions of {chosen}", cells[chosen]["transmissions_per_delivered"], 1 / success, 0.03)
    meets = {cc for cc, one in own.items() if one["found"] >= 0.995}
    # Four copies within 10 s let 1 - 0.19^4 = 99.87 % through.
    enough = [cc for cc, one in own.items() if one["found"] >= 0.999]
    print(f"  99.9 %: {', '.join(enough) or 'none of them'}")
    print(f"  answer: {chosen}; in time: " + ", ".join(f"{cc} {one['found']:.4f}" for cc, one in own.items()))
    return right and chosen in meets and "default" not in meets and not enough


def meters(program: str) -> bool:
    """Meters report once within 10 s, and 99 % of the reports are to be answered within 1.5 s, before any timer."""
    print("How many meters can this cell take?")
    settings = ["exchanges=1", "workload.deadline=1.5 s", "require.in_time=0.99"]
    arguments = [word for one in settings for word in ("--set", one)]
    document = ebbtide(program, ["fleet", *arguments, "--cc", "default", "--reps", "10", "--until", "clients"])
    found = float(document["until"][0]["meets"])
    sizes = (28 + 4 + 6 + 1 + 60, 28 + 4)

    def in_time(count: int) -> float:
        share = 0.0
        for seed in range(5):
            rng = random.Random(seed)
            due = [[rng.uniform(0, 10)] for _ in range(count)]
            times = simulate(due, 375e3, 500e3, 0, sizes, seed)["times"]
            share += sum(time <= 1.5 for _, time in times) / count / 5
        return share

    low, high = 1000, 16000
    while high - low > 10:
        middle = (low + high) // 2
        low, high = (middle, high) if in_time(middle) >= 0.99 else (low, middle)
    return compare("meters", found, low, 0.03)


def morning(program: str) -> bool:
    """The power comes back at 6:00, with the buffer of the scenario and with half of it."""
    right = True
    document = ebbtide(program, ["morning", "--set", "buffer=250 kB,125 kB", "--cc", "default", "--reps", "10"])
    for cell, buffer in zip(document["cells"], (250e3, 125e3)):
        print("What happens at 6:00?" if buffer == 250e3 else "What if we halve the buffer?")
        phase = next(one for one in cell["phases"] if one["phase"] == "power-is-back")
        times, sent, needless, asked, failed = [], 0, 0, 0, 0
        for seed in range(10):
            rng = random.Random(seed)
            due = []
            for _ in range(4000):
                back, report = rng.uniform(0, 30), rng.uniform(0, 60)
                due.append([back] + ([report] if report >= back else []))
            asked += sum(map(len, due))
            run = simulate(due, 250e3, buffer, 0, (48 + 4 + 7 + 1 + 200, 48 + 4), seed)
            times += [time for _, time in run["times"]]
            sent, needless, failed = sent + run["sent"], needless + run["needless"], failed + run["failed"]
        times.sort()
        right &= compare("exchanges", phase["asked"], asked, 0.01)
        right &= compare("in time", 1 - phase["deadline_missed"], sum(time <= 60 for time in times) / asked, 0.02)
        right &= compare("median, s", phase["exchange_duration_s"]["median"], times[len(times) // 2], 0.05)
        right &= compare("90 %, s", phase["exchange_duration_s"]["p90"], times[len(times) * 9 // 10], 0.05)
        right &= compare("unnecessary", phase["unnecessary_share"], needless / sent, 0.1)
        print(f"  delivered: ebbtide {phase['delivered']:.4f}, model {len(times) / asked:.4f}")
    return right


def main() -> int:
    program = sys.argv[1]
    right = [question(program) for question in (alarms, meters, morning)]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
