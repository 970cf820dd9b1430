"""Stopping rules: confidence intervals over replications."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

# The 97.5 % quantile of Student's t: as the native half has it (ebbtide-sim, stats.rs).
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def t95(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t with that many degrees of freedom."""
    if freedom <= 0:
        return math.inf
    if freedom <= 30:
        return _T95[freedom - 1]
    return (
        2.030 if freedom <= 40 else 2.010 if freedom <= 60 else 1.990 if freedom <= 120 else 1.965
    )


def mean_and_half_width(values: list[float]) -> tuple[float, float]:
    """Return the mean and the half-width of its 95 % interval; infinite below two values."""
    count = len(values)
    if count == 0:
        return math.nan, math.inf
    mean = math.fsum(values) / count
    if count == 1:
        return mean, math.inf
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, t95(count - 1) * math.sqrt(squares / (count - 1) / count)


@dataclass(frozen=True)
class Until:
    """Replications until the 95 % interval of the median completion time is narrow enough.

    Whether it is, is asked after ``least``, twice, four times, ... as many replications, never in
    between: so the answer does not depend on who finished first. It ends at ``most``.
    """

    relative: float
    least: int = 10
    most: int = 1280

    @staticmethod
    def parse(text: str) -> Until:
        """Read ``"until ci < 2 %"``, with ``", at most 500"`` if wanted. Raises ValueError."""
        found = re.fullmatch(
            r"until\s+ci\s*<\s*([0-9.]+)\s*%(?:\s*,\s*at most\s+([0-9]+))?", text.strip()
        )
        try:
            if found is None:
                raise ValueError
            percent = float(found[1])
            most = int(found[2]) if found[2] else Until.most
            if percent <= 0 or most < 2:
                raise ValueError
        except ValueError:
            example = "'until ci < 2 %' or 'until ci < 2 %, at most 500'"
            raise ValueError(f"reps: '{text}' is not a number or {example}") from None
        return Until(percent / 100, min(Until.least, most), most)

    def next(self, values: list[float]) -> int:
        """Return how many replications a cell needs that has these medians; as many, if enough."""
        mean, half = mean_and_half_width(values)
        if not values:
            return self.least
        if half <= self.relative * abs(mean) or len(values) >= self.most or math.isnan(half):
            return len(values)
        return min(2 * len(values), self.most)
