"""Tunes ``fasor`` for the cell of 400 clients at random times, and judges the result on new seeds.

    python tuning.py [TRIALS]

The second network, with a high error rate, keeps the settings from being good in the first only.
"""

from __future__ import annotations

import sys
import time

import ebbtide
from ebbtide._scenario import Settings

CELL: Settings = {"clients": 400, "workload": "random"}
NETWORKS: dict[str, Settings] = {"random": CELL, "high errors": {**CELL, "errors": "high"}}
#: The seed of other replications than those that the trials saw.
FRESH = 2026


def main(trials: int) -> None:
    """Tune, and compare with the defaults."""
    began, cpu = time.perf_counter(), time.process_time()
    tuning = ebbtide.tune(
        "fasor",
        [("nb-iot", settings) for settings in NETWORKS.values()],
        constraint={"fct_s.median": 1.02, "fct_s.p90": 1.02},
        trials=trials,
    )
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(f"{trials} trials: {cpu:.0f} s of CPU, {wall:.0f} s; {tuning.best}")
    for name, settings in NETWORKS.items():
        result = ebbtide.run("nb-iot", set=settings, cc=["fasor", tuning.best], reps=10, seed=FRESH)
        summary = result.summary().set_index("cc")
        for figure in ("fct_s.median", "fct_s.p90", "unnecessary_retransmissions.median"):
            default, tuned = summary[figure]
            print(f"{name}: {figure} {default:.1f} -> {tuned:.1f} ({tuned / default:.3f} x)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
