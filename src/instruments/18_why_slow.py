"""Find out why a distributed run is slow: where do its steps spend their time?

    python src/instruments/18_why_slow.py -- \\
        torchrun --standalone --nproc-per-node=2 src/07_torchrun.py 5 5

It runs the command for a few steps as it is, then without communication, and with
fewer threads if there are more than cores. It names the largest loss and its cure.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import BadInput, Parser, log, one_line_errors, positive_int

WATCH = Path(__file__).resolve().parents[1] / "common" / "cost" / "step_watch.py"
WARM_UP = 3  # steps that are left out
FEWEST = 5  # steps that are needed after them
WORTH_NAMING = 0.3  # of a step
OFTEN = 0.7  # of the steps: then it is one rank that the others wait for
LONG = 3  # times the rank's median step
SMALL_KB = 10  # a message below it costs its latency, whatever its size
MANY_CALLS = 10  # in a step
ERROR_BYTES = 3000  # of what a failed command wrote: its last lines
OWN = ("data", "loop", "compute")  # what a rank does without the others
ALL = (*OWN, "saving", "communication")
IN_TURN = "another rank in each step"
ALONE = "one process communicates nothing: start more, or profile it as in lesson 01"
UNSEEN = "no message was seen (DTensor? pipeline?)"


@dataclass
class Step:
    """Where the median step goes: seconds of each part, and 0 where there is none."""

    compute: float  # work that the rank with the least of it does
    data: float  # the loop waits for a batch
    loop: float  # between two steps
    imbalance: float  # what the slowest rank needs beyond the others
    cores: float  # a rank would compute, but no core is free
    saving: float
    communication: float  # what the step takes on top of all that
    threads: float = 0.0  # what fewer threads would save
    sometimes: float = 0.0  # what one rank alone does in a few steps, shared by all

    def stretch(self, imbalance_too: bool) -> None:
        """Give the time without a core to what was computing meanwhile.

        There are cores enough for the ranks, so other programs use them.
        """
        stretched = self.compute
        if imbalance_too:
            stretched += self.imbalance
        times = 1 + self.cores / stretched
        self.compute *= times
        if imbalance_too:
            self.imbalance *= times
        self.cores = 0.0


def run(command: list[str], steps: int, **plan) -> list[dict]:
    """What each rank measured in a few steps of the command; by rank.

    Raises:
        BadInput: the command cannot be started, fails, or takes too few steps.
    """
    try:
        done, found = watched(command, {"steps": steps, **plan})
    except OSError as error:
        raise BadInput(f"cannot start {command[0]}: {error}") from None
    if done.returncode:
        os.write(2, done.stderr[-ERROR_BYTES:])
        raise BadInput(f"the command ended with status {done.returncode}: repair it")
    if len(found) == 1:
        raise BadInput(ALONE)
    fewest = min((len(rank["steps"]) for rank in found), default=0)
    if fewest < WARM_UP + FEWEST:
        needed = f"{WARM_UP + FEWEST} steps in a group"
        raise BadInput(f"the command must take {needed}")
    return sorted(found, key=lambda rank: rank["rank"])


def watched(
    command: list[str], plan: dict
) -> tuple[subprocess.CompletedProcess, list[dict]]:
    """(the command at its end, what each of its ranks wrote), with WATCH in each."""
    with tempfile.TemporaryDirectory(prefix="why_slow_", dir=".") as name:
        folder = Path(name).resolve()
        (folder / "sitecustomize.py").write_bytes(WATCH.read_bytes())
        (folder / "plan.json").write_text(json.dumps(plan))
        paths = [str(folder)]
        if os.environ.get("PYTHONPATH"):
            paths.append(os.environ["PYTHONPATH"])
        env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, env=env, capture_output=True)
        found = [json.loads(file.read_text()) for file in folder.glob("rank_*.json")]
    return done, found


def seconds(rank: dict, *parts: str) -> list[float]:
    """Seconds of these parts in each step of a rank, without the warm-up."""
    return [sum(step.get(p, 0) for p in parts) for step in rank["steps"][WARM_UP:]]


def over_ranks(choose, ranks: list[dict], *parts: str) -> float:
    """Seconds of these parts in the median step, on the rank that ``choose`` picks."""
    return median(map(choose, *(seconds(rank, *parts) for rank in ranks)))


def split(real: list[dict], silent: list[dict]) -> Step:
    """Where the median step of the real run goes.

    Without communication, what every rank needs is work, and what the slowest needs
    beyond that is imbalance. The real step exposes communication on top of it.
    """
    compute = "compute"
    if all(rank["on_cpu"] and rank["threads"] == 1 for rank in silent):
        compute = "compute cpu"  # without the time in which no core was free
    work = {part: over_ranks(min, silent, part) for part in ("data", "loop", compute)}
    needed = over_ranks(max, silent, *work)
    slowest = over_ranks(max, silent, *OWN)
    saving = over_ranks(max, real, "saving")
    whole = over_ranks(max, real, *ALL)
    return Step(
        compute=work[compute],
        data=work["data"],
        loop=work["loop"],
        imbalance=needed - sum(work.values()),
        cores=slowest - needed,
        saving=saving,
        communication=max(whole - slowest - saving, 0),
    )


# [start cures]
CURES = {
    "data": "the loop waits for the next batch. Lesson 17: workers of the DataLoader",
    "starved workers": "{ranks} ranks and their {workers} workers each share {cores} "
    "core(s). Ask for more cores: lesson 09",
    "sometimes": "rank {alone} works alone in {long} of {seen} steps, as if it "
    "evaluates. Give all ranks a share: lesson 05",
    "loop": "between two steps the ranks do something else. Profile it: lesson 01",
    "saving": "snapshots take this long. Save less often, or shards: lesson 16",
    "imbalance": "all ranks wait for {who}. Give all the same work: lesson 17",
    "cores": "{ranks} ranks share {cores} core(s). Ask for more: lesson 09",
    "threads": "{threads} threads, {cores} core(s). Set OMP_NUM_THREADS: lesson 02",
    "short step": "{compute:.1f} ms of work hide no message. Larger batches: lesson 08",
    "small messages": "{calls:.0f} of {kb:.1f} KB each. Send them as one: lesson 05",
    "scalars": "{scalars:.0f} messages of one number in a step, such as a loss to log. "
    "Add it up, and reduce it every 50 steps: lesson 17",
    "every micro-batch": "{backwards:.0f} reductions in a step. no_sync(): lesson 17",
    "bandwidth": "{mb:.1f} MB in a step. Measure the link: lesson 08; send less: 17",
}
# [end cures]


def crowded(ranks: list[dict]) -> tuple[int, int, int]:
    """(ranks, their threads, their cores) on the host with the fewest per rank."""
    counts = []
    for host in {rank["host"] for rank in ranks}:
        own = [rank for rank in ranks if rank["host"] == host]
        cores = len({core for rank in own for core in rank["cores"]})
        counts.append((len(own), sum(rank["threads"] for rank in own), cores))
    return max(counts, key=lambda count: (count[0] / count[2], count[1] / count[2]))


def slowest_rank(silent: list[dict]) -> str:
    """Which rank the others wait for, and in which part of a step."""
    steps = zip(*(seconds(rank, *OWN) for rank in silent), strict=False)
    last = [step.index(max(step)) for step in steps]
    worst = max(set(last), key=last.count)
    if last.count(worst) < OFTEN * len(last):
        return IN_TURN
    usual = {part: [median(seconds(rank, part)) for rank in silent] for part in OWN}
    spare = {part: values[worst] - min(values) for part, values in usual.items()}
    return f"rank {worst}, in its {max(spare, key=spare.get)}"


def alone_sometimes(silent: list[dict]) -> tuple[float, int, int]:
    """What one rank does in a few long steps, and no other rank does.

    Returns:
        (seconds, spread over all steps; the rank; how many of its steps are long)
    """
    extra, long = {}, {}
    for rank in silent:
        steps = seconds(rank, *OWN)
        usual = median(steps)
        found = [step - usual for step in steps if step > LONG * usual]
        extra[rank["rank"]], long[rank["rank"]] = sum(found) / len(steps), len(found)
    *others, (most, worst) = sorted((value, rank) for rank, value in extra.items())
    return most - max(value for value, _ in others), worst, long[worst]


def waits_for_data(silent: list[dict]) -> float:
    """Seconds of an average step, on an average rank.

    Workers deliver several batches at once, then none: another rank waits each time.
    """
    return mean(mean(seconds(rank, "data")) for rank in silent)


def name_communication(silent: list[dict], lag: float = 0) -> tuple[str, dict]:
    """Why it is exposed: what is sent, how often, and whether its size is the cost."""
    counted = ("calls", "bytes", "backwards", "scalars")
    facts = {n: mean(seconds(silent[0], n)) for n in counted}
    if not facts["calls"]:  # then nothing was left out
        cure = "trace it, lesson 17"
        if lag >= WORTH_NAMING:
            cure = CURES["data"]
        raise BadInput(f"{UNSEEN}; {lag:.0%} of a step waits for data: {cure}")
    facts["kb"] = facts["bytes"] / facts["calls"] / 1e3  # of one message
    facts["mb"] = facts["bytes"] / 1e6  # of a step
    return kind_of_communication(facts, *silent[0]["probe"]), facts


def kind_of_communication(facts: dict, smallest: float, usual: float) -> str:
    """A key of CURES; the probes are seconds of a tiny and of a usual message."""
    if facts["kb"] < SMALL_KB or usual < 2 * smallest:  # its size isn't what it costs
        if facts["scalars"] > facts["calls"] / 2:
            return "scalars"
        if facts["calls"] > MANY_CALLS:
            return "small messages"
        return "short step"
    if facts["backwards"] > 1:
        return "every micro-batch"
    return "bandwidth"


@dataclass(frozen=True)
class Baseline:
    """The run with messages that the others are compared with."""

    measured: list[dict]  # what each rank has written
    steps: int  # of every rank
    ranks: int
    threads: int  # of all ranks, as the command sets them
    cores: int
    fewer: int = 0  # threads of each rank in this run; 0: as the command says
    saved: float = 0.0  # seconds of a step that fewer threads save


def run_with_messages(command: list[str], steps: int) -> Baseline:
    """The run as it is; with fewer threads if those alone are more than the cores."""
    log("Run 1: as it is")
    real = run(command, WARM_UP + steps)
    steps = min(len(rank["steps"]) for rank in real)
    ranks, threads, cores = crowded(real)
    as_it_is = Baseline(real, steps, ranks, threads, cores)
    if not (ranks <= cores < threads and real[0]["on_cpu"]):
        return as_it_is
    fewer = cores // ranks
    log(f"Run 2: with {fewer} thread(s) in each rank; what follows, too")
    calm = run(command, steps, threads=fewer)
    saved = over_ranks(max, real, *ALL) - over_ranks(max, calm, *ALL)
    return replace(as_it_is, measured=calm, fewer=fewer, saved=max(saved, 0))


def diagnose(command: list[str], steps: int) -> tuple[dict[str, float], dict]:
    """The parts of a step, and what the sentences of CURES need."""
    base = run_with_messages(command, steps)
    number = 3 if base.fewer else 2
    log(f"Run {number}: without communication")
    silent = run(command, base.steps, threads=base.fewer, silent=True)
    step, who = split(base.measured, silent), slowest_rank(silent)
    step.threads = base.saved
    step.sometimes, alone, long = alone_sometimes(silent)
    hidden = parts_without_a_case(step, base)
    if "cores" in hidden:
        step.stretch(imbalance_too=who != IN_TURN)
    parts = {part: s for part, s in asdict(step).items() if part not in hidden}
    lag = over_ranks(max, base.measured, "data") / over_ranks(max, base.measured, *ALL)
    name, facts = name_communication(silent, lag)
    parts[name] = parts.pop("communication")
    workers = max(rank.get("workers", 0) for rank in silent)
    if workers and base.ranks * (workers + 1) > base.cores:
        blame_workers(parts, waits_for_data(silent))
    facts.update(ranks=base.ranks, threads=base.threads, cores=base.cores)
    facts.update(steps=base.steps, seen=base.steps - WARM_UP, workers=workers)
    facts.update(who=who, compute=1e3 * step.compute, alone=alone, long=long)
    return parts, facts


def parts_without_a_case(step: Step, base: Baseline) -> set[str]:
    """The parts that this run can't have lost time by."""
    hidden = set()
    if step.sometimes < WORTH_NAMING * sum(asdict(step).values()):
        hidden.add("sometimes")
    if not base.fewer:
        hidden.add("threads")
    if base.ranks <= base.cores:
        hidden.add("cores")
    return hidden


def blame_workers(parts: dict[str, float], waits: float) -> None:
    """Data that is late because its workers lack cores makes ranks unequal, too."""
    parts["starved workers"] = parts.pop("data")
    if waits >= parts["imbalance"] / 2:
        parts["starved workers"] += parts.pop("imbalance")


def report(parts: dict[str, float], facts: dict) -> None:
    """Print the parts of a step, the largest loss and its cure."""
    whole = sum(parts.values())
    log(f"A step takes {1e3 * whole:.1f} ms; {facts['steps'] - WARM_UP} steps measured")
    for part, value in sorted(parts.items(), key=lambda item: -item[1]):
        log(f"  {part:<18} {1e3 * value:9.1f} ms {value / whole:6.0%}")
    share, largest = max((v / whole, p) for p, v in parts.items() if p != "compute")
    verdict = f"Healthy: no loss takes {WORTH_NAMING:.0%} of a step. The largest: "
    if share >= WORTH_NAMING:
        verdict = "Largest loss: "
    log(f"{verdict}{largest}, {share:.0%}: {CURES[largest].format(**facts)}")


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--steps", type=positive_int, default=20, help="a run (or 20)")
    parser.add_argument("command", nargs="...", help="after --: your run")
    args = parser.parse_args()
    command = args.command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        raise BadInput("no command is given: write it after --, as in -- torchrun ...")
    report(*diagnose(command, args.steps))


if __name__ == "__main__":
    main()
