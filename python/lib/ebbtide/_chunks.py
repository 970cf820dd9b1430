"""Work in pieces: how a campaign is cut, and how pieces are run by any executor."""

from __future__ import annotations

import concurrent.futures as futures
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ebbtide import _ebbtide
from ebbtide.control import Written

#: How long a piece shall take, s: long against what an executor spends on it, short against what is
#: lost when a worker dies.
CHUNK_SECONDS = 30.0
#: Pieces per worker at least, so that all end at about the same time.
PER_WORKER = 8
#: How often a piece is given to an executor whose workers die under it.
ATTEMPTS = 5

T = TypeVar("T")

#: Cells of one piece: settings, control, replications.
Work = list[tuple[list[tuple[str, str]], str, list[int]]]


@dataclass(frozen=True)
class Piece:
    """One piece of work, all that a worker needs: small, and the same everywhere."""

    place: str
    text: str
    seed: int
    version: str
    work: Work
    #: The controls that are written in Python.
    classes: list[Written]
    folder: str

    @property
    def runs(self) -> int:
        """Replications."""
        return sum(len(reps) for _, _, reps in self.work)


@dataclass(frozen=True)
class Done:
    """The result of a piece: keys, failures as (key, cell, replication, error, replay), seconds."""

    keys: list[str]
    failed: list[tuple[str, str, int, str, str]]
    wall_s: float


def run_piece(piece: Piece, cancel: _ebbtide.Cancel | None = None) -> Done:
    """Run a piece on this thread, without the interpreter lock, and write one file."""
    if piece.version != _ebbtide.VERSION:
        raise RuntimeError(
            f"this worker has ebbtide {_ebbtide.VERSION}, the campaign is of {piece.version}: "
            "install the same on all machines"
        )
    scenario, native = (piece.place, piece.text), [one.native() for one in piece.classes]
    return Done(*_ebbtide.run_chunk(scenario, piece.seed, piece.work, native, piece.folder, cancel))


def cut(
    tasks: Sequence[tuple[int, int]], costs: Callable[[int], float], most_s: float
) -> Iterator[list[tuple[int, int]]]:
    """Cut (cell, replication) pairs into runs of about ``most_s`` seconds."""
    piece: list[tuple[int, int]] = []
    spent = 0.0
    for task in tasks:
        cost = costs(task[0])
        if piece and spent + cost > most_s:
            yield piece
            piece, spent = [], 0.0
        piece.append(task)
        spent += cost
    if piece:
        yield piece


def workers_of(executor: futures.Executor) -> int:
    """Return the number of workers of an executor, if it is known."""
    for name in ("_max_workers", "num_workers"):
        value = getattr(executor, name, None)
        if isinstance(value, int) and value > 0:
            return value
    client: Any = getattr(executor, "_client", None)
    try:
        return max(1, int(sum(client.nthreads().values())))
    except Exception:
        return os.cpu_count() or 1


class Threads(futures.Executor):
    """Threads that do not keep the interpreter from ending, as those of the standard library do.

    A replication may take minutes, and after Ctrl-C nobody waits for it.
    """

    def __init__(self, count: int) -> None:
        self._max_workers = count
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        for number in range(count):
            threading.Thread(target=self._work, name=f"ebbtide-{number}", daemon=True).start()

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            work()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> futures.Future[T]:
        """Run a function on one of the threads."""
        future: futures.Future[T] = futures.Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self._queue.put(work)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after what is queued."""
        for _ in range(self._max_workers):
            self._queue.put(None)


class Pool:
    """Runs pieces on an executor: few at a time are handed over, those whose worker died again."""

    def __init__(
        self,
        executor: futures.Executor | None,
        jobs: int | None,
        progress: Callable[[Done], None],
    ) -> None:
        self._own = executor is None
        self._cancel = _ebbtide.Cancel() if executor is None else None
        count = jobs or os.cpu_count() or 1
        self._executor = executor or Threads(count)
        self.workers = workers_of(self._executor)
        self._progress = progress

    def run(self, pieces: Iterator[Piece]) -> None:
        """Run them all. Raises what a piece raises that is not its replications' fault."""
        waiting: dict[futures.Future[Done], tuple[Piece, int]] = {}
        error: BaseException | None = None
        # A scheduler need not hold a million pieces: enough that no worker ever waits.
        ahead = 4 * self.workers + 4
        try:
            more = True
            while more or waiting:
                while more and len(waiting) < ahead and error is None:
                    piece = next(pieces, None)
                    more = piece is not None
                    if piece is not None:
                        waiting[self._submit(piece)] = (piece, 1)
                if error is not None:
                    more = False
                if not waiting:
                    continue
                done = self._ended(waiting)
                for future in done:
                    piece, attempt = waiting.pop(future)
                    try:
                        self._progress(future.result())
                    except Exception as failure:
                        if not _is_lost(failure) or attempt >= ATTEMPTS:
                            error = error or failure
                        elif error is None:
                            waiting[self._submit(piece)] = (piece, attempt + 1)
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
        finally:
            if self._cancel is not None:
                self._cancel.cancel()
            if self._own:
                self._executor.shutdown(wait=False, cancel_futures=True)
        if error is not None:
            raise error

    def _submit(self, piece: Piece) -> futures.Future[Done]:
        if self._cancel is not None:
            return self._executor.submit(run_piece, piece, self._cancel)
        return self._executor.submit(run_piece, piece)

    @staticmethod
    def _ended(waiting: dict[futures.Future[Done], tuple[Piece, int]]) -> set[futures.Future[Done]]:
        """Wait for at least one, so that Ctrl-C is heard meanwhile."""
        while True:
            done, _ = futures.wait(waiting, timeout=0.2, return_when=futures.FIRST_COMPLETED)
            if done:
                return done
            time.sleep(0)


def _is_lost(failure: Exception) -> bool:
    """Whether the worker died, rather than its work failed."""
    names = {kind.__name__ for kind in type(failure).__mro__}
    return bool(
        names
        & {"BrokenExecutor", "KilledWorker", "CommClosedError", "CancelledError", "WorkerLost"}
    )
