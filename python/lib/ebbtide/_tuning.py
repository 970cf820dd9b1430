"""Settings of controls and parameters of scenarios, found by trial."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ebbtide import _ebbtide
from ebbtide._extras import need
from ebbtide._results import run
from ebbtide._scenario import Scenario, ScenarioLike, Settings, count_of
from ebbtide._scenario import scenario as scenario_of

#: The values that a setting may take: from low to high (times in seconds), or a list of choices.
Range: TypeAlias = "tuple[float, float] | Sequence[str]"

#: Where the settings of most controls are looked for, by default: seconds.
RANGES: dict[str, tuple[float, float]] = {
    "initial-rto": (0.5, 20.0),
    "bound": (10.0, 240.0),
    "ack-timeout": (0.5, 20.0),
    "floor": (0.1, 5.0),
}
_KEYS = {
    "default": ("ack-timeout", "bound"),
    "linux-rto": ("initial-rto", "floor", "bound"),
    "peak-hopper": ("initial-rto", "floor", "bound"),
    "rcoap": ("initial-rto", "floor", "bound"),
}
_ANY = ("initial-rto", "bound")

#: The figures of :meth:`ebbtide.Result.summary` that tuning may go by; less is better of all.
FIGURES = (
    "fct_s.median",
    "fct_s.p90",
    "fct_s.max",
    "exchange_duration_s.median",
    "exchange_duration_s.p90",
    "unnecessary_retransmissions.median",
    "unnecessary_retransmissions.p90",
    "failed",
)


@dataclass(frozen=True)
class Tuning:
    """The result of tuning: the study of Optuna, and the settings to paste."""

    control: str
    objectives: tuple[str, ...]
    study: Any
    parameters: tuple[str, ...]

    @property
    def best(self) -> str:
        """The control with the settings that are best, as ``cc`` takes it.

        Of several objectives: the trial of the front whose product of ratios is least. Raises
        ValueError if no trial meets the constraint.
        """
        return str(self._best().user_attrs["control"])

    @property
    def values(self) -> tuple[float, ...]:
        """The objectives there, as multiples of what the defaults reach: 0.9 is better."""
        return tuple(self._best().values)

    def toml(self) -> str:
        """Return the settings for a scenario file, to paste."""
        name, *settings = self.best.split(":")
        lines = [f'{key} = "{value}"' for key, value in (one.split("=", 1) for one in settings)]
        return "\n".join([f"[control.{name}]", *lines]) + "\n"

    def front(self) -> Any:
        """Return the Pareto front as a DataFrame: controls, and multiples of the defaults."""
        pandas = need("pandas", "dataframe")
        rows = [
            {
                "cc": trial.user_attrs["control"],
                **dict(zip(self.objectives, trial.values, strict=True)),
            }
            for trial in self.study.best_trials
            if _is_feasible(trial)
        ]
        return pandas.DataFrame(rows).sort_values(self.objectives[0], ignore_index=True)

    def trials(self) -> Any:
        """Return all trials as a DataFrame."""
        return self.study.trials_dataframe()

    def sensitivity(self) -> dict[str, float]:
        """Return how much of the first objective's variance each setting explains, 0 to 1."""
        optuna = need("optuna", "tune")
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        found: dict[str, float] = optuna.importance.get_param_importances(
            self.study, evaluator=evaluator, target=lambda trial: trial.values[0]
        )
        return found

    def _best(self) -> Any:
        feasible = [trial for trial in self.study.best_trials if _is_feasible(trial)]
        if not feasible:
            raise ValueError("no trial meets the constraint; loosen it, or allow more trials")
        return min(feasible, key=lambda trial: (math.prod(trial.values), trial.number))


def tune(
    control: str,
    networks: ScenarioLike | Sequence[tuple[ScenarioLike, Settings]],
    objective: str | Sequence[str] = "fct_s.median",
    constraint: Mapping[str, float] | None = None,
    trials: int = 100,
    *,
    ranges: Mapping[str, Range] | None = None,
    reps: int = 2,
    seed: int = 1,
    storage: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
) -> Tuning:
    """Find settings of a congestion control for some networks, by Optuna.

    ``networks``: a scenario, or pairs of scenario and settings. ``objective``: one figure of
    :meth:`ebbtide.Result.summary`, or several for a Pareto front; each as a multiple of what the
    control's defaults reach, geometric mean over the networks. ``constraint``: the largest multiple
    of other figures in any network, such as ``{"unnecessary_retransmissions.median": 1.05}``.
    ``ranges``: settings and the values to try, such as ``{"initial-rto": (1.0, 10.0)}`` in seconds,
    or a list of choices as text; None for the usual ones. ``reps``: replications of each trial, all
    under the same luck. ``storage``: a journal file that several processes may share, each with
    ``trials`` of its own; a stopped study goes on.

    Raises ValueError for what is not possible; ImportError without the extra ``tune``.
    """
    optuna = need("optuna", "tune")
    objectives = (objective,) if isinstance(objective, str) else tuple(objective)
    for figure in (*objectives, *(constraint or {})):
        if figure not in FIGURES:
            raise ValueError(f"objective: '{figure}' is not one of {', '.join(FIGURES)}")
    count_of("trials", trials)
    name = control.split(":")[0]
    space = dict(ranges) if ranges else {key: RANGES[key] for key in _KEYS.get(name, _ANY)}
    pairs = _networks(networks)

    def figures_of(cc: str) -> list[Any]:
        found = []
        for what, settings in pairs:
            result = run(what, set=settings, cc=[cc], reps=reps, seed=seed, jobs=jobs)
            found.append(result.summary().iloc[0])
        return found

    defaults = figures_of(control)

    def ratios(figures: list[Any], name: str) -> list[float]:
        # One more of each: zero unnecessary retransmissions may be compared, too.
        plus = 1.0 if name == "failed" or name.startswith("unnecessary") else 0.0
        return [
            (own[name] + plus) / (was[name] + plus)
            for own, was in zip(figures, defaults, strict=True)
        ]

    def attempt(trial: Any) -> tuple[float, ...]:
        settings = [f"{key}={_suggest(trial, key, values)}" for key, values in space.items()]
        cc = ":".join([control, *settings])
        figures = figures_of(cc)
        trial.set_user_attr("control", cc)
        excess = [max(ratios(figures, n)) - most for n, most in (constraint or {}).items()]
        trial.set_user_attr("excess", excess)
        for figure, value in zip(constraint or {}, excess, strict=True):
            trial.set_constraint(figure, value)
        return tuple(_geometric(ratios(figures, one)) for one in objectives)

    study = _study(optuna, f"tune {control}", len(objectives), seed, storage)
    study.optimize(attempt, n_trials=trials)
    return Tuning(control, objectives, study, tuple(space))


@dataclass(frozen=True)
class Calibration:
    """The result of a calibration: each free parameter with its uncertainty."""

    study: Any
    scenario: Scenario
    #: Key, and the value that fits best, as ``set`` takes it.
    best: dict[str, str]
    #: Key, and the least and largest value that fit as well, given how scattered measurements are.
    interval: dict[str, tuple[float, float]]
    #: How far the best one is from what was measured: mean ratio of quantiles, 0.05 is 5 %.
    error: float


def calibrate(
    scenario: ScenarioLike,
    measured: Sequence[float],
    free: Mapping[str, tuple[float, float, str]],
    *,
    figure: str = "rtt_s",
    set: Settings | None = None,
    cc: str = "default",
    trials: int = 60,
    reps: int = 2,
    seed: int = 1,
    jobs: int | None = None,
) -> Calibration:
    """Find a scenario's free parameters from what was measured in the real network.

    ``measured``: round trips (``figure="rtt_s"``), exchange durations (``"exchange_duration_s"``)
    or completion times (``"fct_s"``), seconds. ``free``: keys of the scenario with least and
    largest value and unit, such as ``{"network.down.rate": (10, 200, "kbit/s")}``. The quantiles
    from 10 % to 90 % are compared.

    The uncertainty is that of the measurements: parameters whose fit is as good as that of another
    sample of the same size (bootstrap, 90 %).

    Raises ValueError for what is not possible; ImportError without the extra ``tune``.
    """
    optuna, numpy = need("optuna", "tune"), need("numpy", "dataframe")
    values = numpy.asarray(measured, dtype=float)
    if values.size < 10 or not (numpy.isfinite(values).all() and (values > 0).all()):
        raise ValueError("measured: takes at least ten times in seconds, all above zero")
    if figure not in ("rtt_s", "exchange_duration_s", "fct_s"):
        raise ValueError(f"figure: '{figure}' is not rtt_s, exchange_duration_s or fct_s")
    if not free:
        raise ValueError("free: takes at least one key with (least, largest, unit)")
    shares = {"p10": 10, "p25": 25, "median": 50, "p75": 75, "p90": 90}
    wanted = numpy.percentile(values, list(shares.values()))

    def distance(one: Any, other: Any) -> float:
        return float(numpy.mean(numpy.abs(numpy.log(one / other))))

    def attempt(trial: Any) -> float:
        own = {
            key: _quantity(trial.suggest_float(key, low, high, log=low > 0), unit)
            for key, (low, high, unit) in free.items()
        }
        trial.set_user_attr("set", own)
        result = run(scenario, set={**(set or {}), **own}, cc=[cc], reps=reps, seed=seed, jobs=jobs)
        row = result.summary().iloc[0]
        got = numpy.array([row[f"{figure}.{name}"] for name in shares], dtype=float)
        return distance(numpy.maximum(got, 1e-9), wanted)

    study = _study(optuna, "calibrate", 1, seed, None)
    study.optimize(attempt, n_trials=trials)
    # How far samples of the same network are from each other, by luck alone.
    random = numpy.random.default_rng(seed)
    lucky = [
        distance(
            numpy.percentile(random.choice(values, values.size), list(shares.values())), wanted
        )
        for _ in range(200)
    ]
    close = study.best_value + float(numpy.percentile(lucky, 90))
    fits = [trial for trial in study.trials if trial.value is not None and trial.value <= close]
    interval = {
        key: (min(t.params[key] for t in fits), max(t.params[key] for t in fits)) for key in free
    }
    best: dict[str, str] = study.best_trial.user_attrs["set"]
    return Calibration(study, scenario_of(scenario), best, interval, float(study.best_value))


def _networks(
    networks: ScenarioLike | Sequence[tuple[ScenarioLike, Settings]],
) -> list[tuple[ScenarioLike, Settings]]:
    if isinstance(networks, (str, os.PathLike, Mapping, Scenario)):
        return [(networks, {})]
    pairs = list(networks)
    if not pairs:
        raise ValueError("networks: takes at least one scenario")
    return pairs


def _suggest(trial: Any, key: str, values: Range) -> str:
    if isinstance(values, tuple) and all(isinstance(value, (int, float)) for value in values):
        low, high = values
        return f"{trial.suggest_float(key, low, high, log=low > 0) * 1000:.0f}ms"
    return str(trial.suggest_categorical(key, list(values)))


def _quantity(value: float, unit: str) -> str:
    """Return a quantity in as many digits as its smallest unit has: no half bits per second."""
    texts = [f"{value:.{digits}g} {unit}".strip() for digits in (6, 5, 4, 3, 2)]
    exact = (text for text in texts if not unit or _ebbtide.quantity(text) is not None)
    return next(exact, texts[-1])


def _geometric(values: list[float]) -> float:
    if any(value <= 0 for value in values):
        return 0.0
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _is_feasible(trial: Any) -> bool:
    return all(value <= 0 for value in trial.user_attrs.get("excess", []))


def _study(
    optuna: Any, name: str, objectives: int, seed: int, storage: str | os.PathLike[str] | None
) -> Any:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True)
    kept = None
    if storage is not None:
        journal = optuna.storages.journal
        kept = optuna.storages.JournalStorage(journal.JournalFileBackend(os.fspath(storage)))
    return optuna.create_study(
        study_name=name,
        storage=kept,
        load_if_exists=True,
        sampler=sampler,
        directions=["minimize"] * objectives,
    )
