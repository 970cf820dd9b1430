"""The bookkeeping of a million replications, without running them."""

from __future__ import annotations

import concurrent.futures as futures
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import ebbtide
from ebbtide import _chunks

MILLION = 1_000_000


class Pretending(futures.Executor):
    """Says at once that a piece is done, as a worker would, and writes nothing."""

    def __init__(self) -> None:
        self.pieces = 0
        self.runs = 0
        self.most = 0

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        piece: _chunks.Piece = args[0]
        self.pieces += 1
        self.runs += piece.runs
        future: futures.Future[_chunks.Done] = futures.Future()
        keys = [f"{self.pieces}-{index}" for index in range(piece.runs)]
        future.set_result(_chunks.Done(keys, [], 0.1 * piece.runs))
        return future


def test_a_million_replications_are_kept_track_of_in_a_minute_and_a_gigabyte(
    tmp_path: Path,
) -> None:
    began = time.monotonic()
    made = ebbtide.Campaign(
        "nb-iot",
        {"clients": list(range(1, 101)), "exchanges": 1},
        ["default", "fasor"],
        MILLION // 200,
        folder=tmp_path,
    )
    executor = Pretending()
    made.run(executor)
    assert executor.runs in (MILLION, MILLION - 1)
    assert 8 <= executor.pieces < 5000
    assert time.monotonic() - began < 60
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert peak_kib < 1 << 20, f"{peak_kib / 1024:.0f} MiB"


def test_pieces_are_cut_at_about_the_same_cost() -> None:
    tasks = [(cell, rep) for cell in range(3) for rep in range(100)]

    def cost(cell: int) -> float:
        return (0.1, 1.0, 40.0)[cell]

    pieces: Iterator[list[tuple[int, int]]] = _chunks.cut(tasks, cost, 30.0)
    sizes = []
    seen: list[tuple[int, int]] = []
    for piece in pieces:
        sizes.append(sum(cost(cell) for cell, _ in piece))
        seen += piece
    assert seen == tasks
    assert all(size <= 30.0001 or size == 40.0 for size in sizes)
    assert len(sizes) < 4 + 100 + 1
