"""Watch a training run by its log: a row for each line, and a warning when needed.

    torchrun --standalone --nproc-per-node=4 src/starter/train_ddp.py \\
        --log-file run.jsonl
    python src/instruments/17_watch_run.py run.jsonl           # what it has so far
    python src/instruments/17_watch_run.py run.jsonl --follow  # and each new line
    python src/instruments/17_watch_run.py run.jsonl --peak-tflops 989   # MFU on H100s

It reads a file and needs no GPU: run it on a login node, or on your laptop. Ctrl-C ends
--follow.
"""

import argparse
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import BadInput, Parser, log, one_line_errors, positive_float

POLL_S = 0.5  # from one look at the file to the next


@dataclass(frozen=True)
class Record:
    """A line of the log: of all ranks, or a list with an entry for each rank."""

    step: int
    time: float  # seconds since 1970
    loss: float
    grad_norm: float  # before clipping
    samples_per_s: float
    tflops_per_s: float  # of each rank
    data_s: Sequence[float]  # of a step: waiting for data
    own_s: Sequence[float]  # until the rank waits for others
    step_s: Sequence[float]
    memory_gb: Sequence[float]
    tokens_per_s: float = 0.0  # 0: the samples aren't of tokens, or nothing counts them


# [start limits]
@dataclass(frozen=True)
class Limits:
    """From where on a number is worth a warning."""

    window: int = 10  # earlier lines that a new one is compared with, by their median
    fewest: int = 3  # with fewer of them nothing is compared
    spike: float = 1.5  # times the usual loss
    norm: float = 5.0  # times the usual gradient norm
    slower: float = 0.8  # of the usual speed
    memory: float = 1.1  # times that of the window's first line, growing in each
    data: float = 0.2  # of a step spent waiting for data, on the rank that waits most
    behind: float = 0.2  # of a step that one rank is behind the others' median
    silence: float = 5.0  # times the usual time between two lines


# [end limits]


def read_record(line: str, where: str) -> Record:
    """One line of the log.

    Raises:
        BadInput: it is something else; ``where`` says which line.
    """
    cure = "give the file that train_ddp.py --log-file wrote"
    try:
        content = {"tokens_per_s": 0.0, **json.loads(line)}  # older logs lack it
        record = Record(**{field.name: content[field.name] for field in fields(Record)})
    except (ValueError, TypeError):
        raise BadInput(f"{where} is not JSON with a record of a run: {cure}") from None
    except KeyError as error:
        raise BadInput(f"{where} has no {error.args[0]}: {cure}") from None
    wrong = misshapen(record)
    if wrong:
        raise BadInput(f"{where}: {wrong} is {getattr(record, wrong)!r}: {cure}")
    return record


def misshapen(record: Record) -> str:
    """The first field that is no number, or no list with one for each rank; or ""."""
    speeds = ("samples_per_s", "tokens_per_s", "tflops_per_s")
    for name in ("step", "time", "loss", "grad_norm", *speeds):
        if not isinstance(getattr(record, name), (int, float)):
            return name
    for name in ("step_s", "data_s", "own_s", "memory_gb"):
        values = getattr(record, name)
        if not isinstance(values, list) or not values:
            return name
        if not all(isinstance(one, (int, float)) for one in values):
            return name
        if len(values) != len(record.step_s):
            return name
    if min(record.step_s) <= 0:  # shares of a step are told
        return "step_s"
    return ""


def slowest_rank(record: Record) -> tuple[int, float]:
    """(rank, share of a step by which it's behind the median of the others)."""
    late = max(range(len(record.own_s)), key=record.own_s.__getitem__)
    others = [own for rank, own in enumerate(record.own_s) if rank != late]
    if not others:
        return late, 0.0
    behind = record.own_s[late] - statistics.median(others)
    return late, behind / statistics.median(record.step_s)


def data_share(record: Record) -> float:
    """The share of a step that the rank with the slowest data waits for it."""
    shares = zip(record.data_s, record.step_s, strict=True)
    return max(waiting / step for waiting, step in shares)


def problems(history: Sequence[Record], now: Record, limits: Limits) -> dict[str, str]:
    """Kind -> sentence of all that is wrong with a line, seen from the earlier ones."""
    found = {}
    if not math.isfinite(now.loss):
        found["loss"] = f"the loss is {now.loss}: no later step repairs it"
    elif not math.isfinite(now.grad_norm):
        found["loss"] = f"the gradient norm is {now.grad_norm}: a batch, or overflow?"
    before = [one for one in history if math.isfinite(one.loss)][-limits.window :]
    if len(before) >= limits.fewest:
        found |= _changes(before, now, limits)
    if data_share(now) > limits.data:
        share = f"{data_share(now):.0%} of a step"
        rank = max(range(len(now.data_s)), key=now.data_s.__getitem__)
        found["data"] = f"rank {rank} waits {share} for data: more workers?"
    rank, behind = slowest_rank(now)
    if behind > limits.behind:
        found["rank"] = f"rank {rank} is slow: {behind:.0%} of a step behind the others"
    return found


def _changes(before: Sequence[Record], now: Record, limits: Limits) -> dict[str, str]:
    """What is wrong with a line compared with the earlier ones."""
    found = {}
    loss = statistics.median(one.loss for one in before)
    if now.loss > limits.spike * loss:
        found["spike"] = f"the loss jumps to {short(now.loss)}, from about {loss:.3f}"
    norm = statistics.median(one.grad_norm for one in before)
    if math.isfinite(now.grad_norm) and now.grad_norm > limits.norm * norm:
        usual = f"usually {norm:.3f}"
        found["norm"] = f"the gradient norm is {short(now.grad_norm)}, {usual}"
    speed = statistics.median(one.samples_per_s for one in before)
    if now.samples_per_s < limits.slower * speed:
        share = now.samples_per_s / speed
        found["speed"] = f"only {share:.0%} of the usual {speed:,.0f} samples/s"
    memory = [max(one.memory_gb) for one in [*before, now]]
    grows = all(low < high for low, high in itertools.pairwise(memory))
    if grows and memory[-1] > limits.memory * memory[0]:
        lines = f"in each of {len(memory)} lines"
        found["memory"] = f"memory grows {lines}, to {memory[-1]:.2f} GB: what is kept?"
    return found


def short(value: float) -> str:
    """A number that fits its column, whatever a run that diverges makes of it."""
    if value >= 1e5:
        return f"{value:.1e}"
    return f"{value:.3f}"


def heading(record: Record) -> str:
    """The names of the columns of ``row``; tokens/s only where they are counted."""
    first = "   step      loss  grad norm  samples/s"
    if record.tokens_per_s:
        first += "     tokens/s"
    return f"{first}     MFU  memory GB  data  slowest rank"


def row(record: Record, peak_tflops: float | None) -> str:
    """A line of the table; MFU is "-" where the peak or the operations are unknown."""
    mfu = "-"
    if peak_tflops and math.isfinite(record.tflops_per_s):
        mfu = f"{record.tflops_per_s / peak_tflops:.1%}"
    rank, behind = slowest_rank(record)
    first = f"{record.step:>7}{short(record.loss):>10}{short(record.grad_norm):>11}"
    speed = f"{record.samples_per_s:>11,.0f}"
    if record.tokens_per_s:
        speed += f"{record.tokens_per_s:>13,.0f}"
    second = f"{mfu:>8}{max(record.memory_gb):>11.2f}{data_share(record):>6.0%}"
    return f"{first}{speed}{second}  {rank}, by {behind:.0%}"


class Watcher:
    """Prints the rows, and each problem once until it's gone."""

    def __init__(self, limits: Limits, peak_tflops: float | None):
        self.limits, self.peak_tflops = limits, peak_tflops
        self.history: list[Record] = []
        self.known: set[str] = set()  # kinds of problems that the last line had
        self.heading = ""  # the last one printed

    def show(self, record: Record) -> None:
        """A row, and a line for each problem that the line before didn't have."""
        # a resumed run repeats the steps after its snapshot: its own lines count
        self.history = [one for one in self.history if one.step < record.step]
        found = problems(self.history, record, self.limits)
        if self.heading != heading(record):
            self.heading = heading(record)
            log(self.heading)
        log(row(record, self.peak_tflops))
        for kind, sentence in found.items():
            if kind not in self.known:
                log(f"! step {record.step}: {sentence}")
        self.known = set(found)
        self.history.append(record)

    def usual_gap(self) -> float:
        """Seconds from one line to the next; infinite as long as there are too few."""
        times = [one.time for one in self.history[-self.limits.window :]]
        gaps = [late - early for early, late in itertools.pairwise(times)]
        if len(gaps) < self.limits.fewest:
            return math.inf
        return statistics.median(gaps)


def new_lines(path: Path, start: int) -> tuple[list[str], int]:
    """The complete lines of a file from byte ``start`` on, and where they end."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            content = file.read()
    except OSError as error:
        cure = "start the run with --log-file, or wait for its first line"
        raise BadInput(f"cannot read {path}: {error.strerror}: {cure}") from None
    complete = content[: content.rfind(b"\n") + 1]  # the last one may be half written
    return complete.decode("utf-8", "replace").splitlines(), start + len(complete)


def records(path: Path, follow: bool) -> Iterator[Record | None]:
    """What the file has, and with ``follow`` what is added; None: nothing new now."""
    start, count = 0, 0
    while True:
        lines, start = new_lines(path, start)
        for line in lines:
            count += 1
            yield read_record(line, f"{path} line {count}")
        if not follow:
            return
        yield None
        time.sleep(POLL_S)


def watch(path: Path, watcher: Watcher, follow: bool) -> None:
    """Show all records; say once when no more of them arrive."""
    last, told = time.monotonic(), False
    for record in records(path, follow):
        silence = time.monotonic() - last
        if record:
            watcher.show(record)
            last, told = time.monotonic(), False
        elif silence > watcher.limits.silence * watcher.usual_gap() and not told:
            usual = f"usually every {watcher.usual_gap():.1f} s"
            log(f"! no new line for {silence:.1f} s, {usual}: ended, saving, or hangs?")
            told = True


def parse_arguments() -> argparse.Namespace:
    parser = Parser(__doc__)
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="the log of a run, one JSON per line")
    add("--follow", action="store_true", help="wait for new lines, until Ctrl-C")
    peak = "what a device can do, in the precision of the run: shows MFU"
    add("--peak-tflops", metavar="T", type=positive_float, help=peak)
    return parser.parse_args()


@one_line_errors
def main() -> None:
    args = parse_arguments()
    try:
        watch(args.file, Watcher(Limits(), args.peak_tflops), args.follow)
    except KeyboardInterrupt:
        log("No longer watching; the run continues")


if __name__ == "__main__":
    main()
