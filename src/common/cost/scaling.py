"""Timed runs on different numbers of ranks: their CSV file, table and plot."""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from common.distributed import BadInput

# (ranks, batch of a rank) -> milliseconds of each step
Times = Mapping[tuple[int, int], list[float]]
HEAD = "ranks  batch   ms/step     spread  sequences/s  speedup  efficiency"


class _Run(NamedTuple):
    """One number of ranks, measured; a row of the CSV file."""

    scaling: str  # "strong": equal global batches; "weak": equal batches of a rank
    ranks: int
    global_batch: int  # sequences of all ranks in a step
    milliseconds: float  # of a step, the median
    low: float  # a quarter of the steps took less
    high: float  # a quarter took more
    steps: int  # that were measured
    parameters: int
    device: str

    @classmethod
    def of(
        cls, scaling: str, ranks: int, batch: int, steps: list[float], *where
    ) -> _Run:
        """The row for these times of steps, in ms; ``where``: parameters, device."""
        low, middle, high = statistics.quantiles(steps, n=4, method="inclusive")
        times = (round(value, 3) for value in (middle, low, high))
        return cls(scaling, ranks, batch, *times, len(steps), *where)

    @property
    def rate(self) -> float:
        """Sequences per second, of all ranks together."""
        return 1000 * self.global_batch / self.milliseconds

    def line(self, base: _Run) -> str:
        """The row of the table, compared with the run on the fewest ranks."""
        speedup = self.rate / base.rate
        efficiency = speedup * base.ranks / self.ranks
        spread = f"{self.low:.0f} to {self.high:.0f}"
        times = f"{self.milliseconds:9.1f} {spread:>10} {self.rate:12,.0f}"
        row = f"{self.ranks:5} {self.global_batch:6} {times} {speedup:8.2f}"
        return f"{row} {efficiency:11.0%}"


COLUMNS = tuple(_Run.__annotations__)  # of the CSV file


class Runs:
    """Runs that may be compared; of each kind of scaling, the fewest ranks first.

    Raises:
        BadInput: they differ in something other than the number of ranks.
    """

    def __init__(self, runs: Iterable[_Run]):
        self.kinds: dict[str, list[_Run]] = {}
        for run in sorted(runs, key=lambda run: (run.scaling, run.ranks)):
            self.kinds.setdefault(run.scaling, []).append(run)
        for kind, found in self.kinds.items():
            _refuse_unequal(kind, found)

    @classmethod
    def measured(cls, times: Times, batch: int, *where) -> Runs:
        """What was timed: with ``batch`` of all ranks (strong), or of each (weak).

        ``where`` are the number of parameters and the device.
        """
        cases = [(n, n * each, steps) for (n, each), steps in times.items()]
        strong = [_Run.of("strong", *x, *where) for x in cases if x[1] == batch]
        weak = [_Run.of("weak", *x, *where) for x in cases if x[1] == batch * x[0]]
        return cls(strong + weak)

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Runs:
        """The rows of all these files, which :meth:`write` has written."""
        found: dict[_Run, Path] = {}
        for path in paths:
            for run in _rows(path):
                if run in found:
                    same = f"{found[run]} and {path} have the same run of {run.ranks}"
                    raise BadInput(f"{same} rank(s): give each file once")
                found[run] = path
        return cls(found)

    def write(self, path: Path) -> None:
        """A line of names, then a row for each run."""
        rows = [run for found in self.kinds.values() for run in found]
        try:
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
        except OSError as error:
            raise BadInput(f"cannot write --csv {path}: {error.strerror}") from error

    def table(self) -> str:
        """Each kind of scaling, what it keeps equal, and a row for each run."""
        return "\n".join(
            line
            for kind, runs in self.kinds.items()
            for line in [_title(kind, runs), HEAD, *(r.line(runs[0]) for r in runs)]
        )

    def draw(self, path: Path) -> str:
        """Write the plot, without a display; a sentence that says what was done."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            cure = "pip install matplotlib"
            return f"{path} is not drawn: matplotlib is missing ({cure})"
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot(xlabel="ranks", ylabel="speedup")
        counts = sorted({run.ranks for runs in self.kinds.values() for run in runs})
        ideal = [count / counts[0] for count in counts]
        axes.plot(counts, ideal, "--", color="gray", label="perfect")
        for kind, runs in self.kinds.items():
            base = runs[0].rate
            axes.errorbar(
                [run.ranks for run in runs],
                [run.rate / base for run in runs],
                [_error(run, base) for run in runs],
                fmt="o-",
                capsize=3,
                label=f"{kind} scaling",
            )
        axes.set_xticks(counts)
        axes.legend()
        figure.savefig(path)
        return f"{path} is drawn"


def _error(run: _Run, base: float) -> float:
    """Half of the spread, as a speedup."""
    return run.rate / base * (run.high - run.low) / 2 / run.milliseconds


def _title(kind: str, runs: list[_Run]) -> str:
    least, most = runs[0].global_batch, runs[-1].global_batch
    if kind == "strong":
        return f"Strong scaling: {least} sequences a step, shared by the ranks"
    title = f"Weak scaling: {least // runs[0].ranks} sequences a step on each rank"
    if least == most:
        return title
    return f"{title}\n(global batch {least} to {most}: a step isn't the same training)"


def _refuse_unequal(kind: str, runs: list[_Run]) -> None:
    """What is compared must be equal: the batch, the model and the device."""
    if kind not in ("strong", "weak"):
        raise BadInput(f"scaling {kind!r} of a run is neither 'strong' nor 'weak'")
    batch = "global batch" if kind == "strong" else "batch of a rank"
    for name, value in (
        (batch, lambda run: run.global_batch / (run.ranks if kind == "weak" else 1)),
        ("model", lambda run: f"{run.parameters:,} parameters"),
        ("device", lambda run: run.device),
    ):
        first, *others = [(value(run), run.ranks) for run in runs]
        for other in others:
            if other[0] != first[0]:
                (a, n), (b, m) = first, other
                a, b = (f"{x:g}" if isinstance(x, float) else x for x in (a, b))
                raise BadInput(
                    f"not {kind} scaling, because the {name} differs: {a} on {n} ranks "
                    f"and {b} on {m}: measure them again with equal options"
                )


def _rows(path: Path) -> list[_Run]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            names, *rows = csv.reader(file)
            if tuple(names) != COLUMNS:
                raise ValueError
            runs = [
                _Run(row[0], *map(int, row[1:3]), *map(float, row[3:6]),
                    *map(int, row[6:8]), row[8])
                for row in rows
            ]  # fmt: skip
            if not runs or any(not 0 < n < math.inf for run in runs for n in run[1:8]):
                raise ValueError
            return runs
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, IndexError, TypeError, csv.Error):
        what = "is not a file that --csv of this program has written"
        raise BadInput(f"{path} {what}: give one of those") from None
