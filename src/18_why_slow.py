"""Find out why a distributed run is slow: where do its steps spend their time?

    python src/18_why_slow.py -- \\
        torchrun --standalone --nproc-per-node=2 src/07_torchrun.py 5 5

It runs the command for a few steps as it is, then without communication, and with
fewer threads if there are more than cores. It names the largest loss and its cure.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import mean, median

from common.distributed import BadInput, Parser, log, one_line_errors, positive_int

WATCH = Path(__file__).parent / "common" / "cost" / "step_watch.py"
WARM_UP, FEWEST, WORTH_NAMING = 3, 5, 0.3  # steps: left out, needed; share of a step
OWN = ("data", "loop", "compute")  # what a rank does without the others
ALL = (*OWN, "saving", "communication")
IN_TURN = "another rank in each step"
ALONE = "one process communicates nothing: start more, or profile it as in lesson 01"
UNSEEN = "no message was seen (DTensor? pipeline?)"


def run(command: list[str], steps: int, **plan) -> list[dict]:
    """What each rank measured in a few steps of the command; by rank."""
    try:
        with tempfile.TemporaryDirectory(prefix="why_slow_", dir=".") as name:
            folder, old = Path(name).resolve(), os.getenv("PYTHONPATH")
            (folder / "sitecustomize.py").write_bytes(WATCH.read_bytes())
            (folder / "plan.json").write_text(json.dumps({"steps": steps} | plan))
            path = os.pathsep.join(filter(None, [str(folder), old]))
            env = os.environ | {"PYTHONPATH": path}
            done = subprocess.run(command, env=env, capture_output=True)
            found = [json.loads(f.read_text()) for f in folder.glob("rank_*.json")]
    except OSError as error:
        raise BadInput(f"cannot start {command[0]}: {error}") from None
    if done.returncode:
        os.write(2, done.stderr[-3000:])
        raise BadInput(f"the command ended with status {done.returncode}: repair it")
    if len(found) < 2 or min(len(rank["steps"]) for rank in found) < WARM_UP + FEWEST:
        few = f"the command must take {WARM_UP + FEWEST} steps in a group"
        raise BadInput(ALONE if len(found) == 1 else few)
    return sorted(found, key=lambda rank: rank["rank"])


def seconds(rank: dict, *parts: str) -> list[float]:
    """Seconds of these parts in each step of a rank, without the warm-up."""
    return [sum(step.get(p, 0) for p in parts) for step in rank["steps"][WARM_UP:]]


def over_ranks(choose, ranks: list[dict], *parts: str) -> float:
    """Seconds of these parts in the median step, on the rank that ``choose`` picks."""
    return median(map(choose, *(seconds(rank, *parts) for rank in ranks)))


def split(real: list[dict], silent: list[dict]) -> dict[str, float]:
    """Where the median step of the real run goes, in seconds.

    Without communication, what every rank needs is work, and what the slowest needs
    beyond that is imbalance. The real step exposes communication on top of it.
    """
    alone = all(rank["on_cpu"] and rank["threads"] == 1 for rank in silent)
    compute = "compute cpu" if alone else "compute"  # else: on an accelerator
    work = ("data", "loop", compute)
    parts = {part: over_ranks(min, silent, part) for part in work}
    parts["imbalance"] = over_ranks(max, silent, *work) - sum(parts.values())
    slowest = over_ranks(max, silent, *OWN)
    parts["cores"] = slowest - sum(parts.values())  # computing, but no core was free
    parts["saving"] = over_ranks(max, real, "saving")
    step = over_ranks(max, real, *ALL)
    parts["communication"] = max(step - slowest - parts["saving"], 0)
    return {"compute": parts.pop(compute)} | parts


# [start cures]
CURES = {
    "data": "the loop waits for the next batch. Lesson 17: workers of the DataLoader",
    "loop": "between two steps the ranks do something else. Profile it: lesson 01",
    "saving": "snapshots take this long. Save less often, or shards: lesson 16",
    "imbalance": "all ranks wait for {who}. Give all the same work: lesson 17",
    "cores": "{ranks} ranks share {cores} core(s). Ask for more: lesson 09",
    "threads": "{threads} threads, {cores} core(s). Set OMP_NUM_THREADS: lesson 02",
    "short step": "{compute:.1f} ms of work hide no message. Larger batches: lesson 08",
    "small messages": "{calls:.0f} of {kb:.1f} KB each. Send them as one: lesson 05",
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
    if last.count(worst) < 0.7 * len(last):
        return IN_TURN
    usual = {part: [median(seconds(rank, part)) for rank in silent] for part in OWN}
    spare = {part: values[worst] - min(values) for part, values in usual.items()}
    return f"rank {worst}, in its {max(spare, key=spare.get)}"


def name_communication(silent: list[dict], lag: float = 0) -> tuple[str, dict]:
    """Why it is exposed: what is sent, how often, and whether its size is the cost."""
    facts = {n: mean(seconds(silent[0], n)) for n in ("calls", "bytes", "backwards")}
    if not facts["calls"]:  # then nothing was left out
        cure = CURES["data"] if lag >= WORTH_NAMING else "trace it, lesson 17"
        raise BadInput(f"{UNSEEN}; {lag:.0%} of a step waits for data: {cure}")
    facts["kb"], facts["mb"] = (facts["bytes"] / n for n in (1e3 * facts["calls"], 1e6))
    smallest, usual = silent[0]["probe"]
    if facts["kb"] < 10 or usual < 2 * smallest:  # its size isn't what it costs
        return "small messages" if facts["calls"] > 10 else "short step", facts
    return "every micro-batch" if facts["backwards"] > 1 else "bandwidth", facts


def diagnose(command: list[str], steps: int) -> tuple[dict[str, float], dict]:
    """The parts of a step, and what the sentences of CURES need."""
    log("Run 1: as it is")
    real, fewer = run(command, WARM_UP + steps), 0
    steps, lost = min(len(rank["steps"]) for rank in real), {}
    ranks, threads, cores = crowded(real)
    if ranks <= cores < threads and real[0]["on_cpu"]:
        fewer, before = cores // ranks, over_ranks(max, real, *ALL)
        log(f"Run 2: with {fewer} thread(s) in each rank; what follows, too")
        real = run(command, steps, threads=fewer)
        lost = {"threads": max(before - over_ranks(max, real, *ALL), 0)}
    log(f"Run {2 + len(lost)}: without communication")
    silent = run(command, steps, threads=fewer, silent=True)
    parts, who = split(real, silent) | lost, slowest_rank(silent)
    lag = over_ranks(max, real, "data") / over_ranks(max, real, *ALL)
    if ranks <= cores:  # then other programs use them: it stretches what ranks compute
        stretched = ["compute", "imbalance"][: 1 + (who != IN_TURN)]
        times = 1 + parts.pop("cores") / sum(parts[part] for part in stretched)
        parts |= {part: parts[part] * times for part in stretched}
    name, facts = name_communication(silent, lag)
    parts[name] = parts.pop("communication")
    facts |= {"ranks": ranks, "threads": threads, "cores": cores, "steps": steps}
    facts |= {"who": who, "compute": 1e3 * parts["compute"]}
    return parts, facts


def report(parts: dict[str, float], facts: dict) -> None:
    """Print the parts of a step, the largest loss and its cure."""
    whole = sum(parts.values())
    log(f"A step takes {1e3 * whole:.1f} ms; {facts['steps'] - WARM_UP} steps measured")
    for part, value in sorted(parts.items(), key=lambda item: -item[1]):
        log(f"  {part:<18} {1e3 * value:9.1f} ms {value / whole:6.0%}")
    share, largest = max((v / whole, p) for p, v in parts.items() if p != "compute")
    words = f"{largest}, {share:.0%}: {CURES[largest].format(**facts)}"
    healthy = f"Healthy: no loss takes {WORTH_NAMING:.0%} of a step. The largest: "
    log(("Largest loss: " if share >= WORTH_NAMING else healthy) + words)


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--steps", type=positive_int, default=20, help="a run (or 20)")
    parser.add_argument("command", nargs="...", help="after --: your run")
    args = parser.parse_args()
    if not (command := args.command[args.command[:1] == ["--"] :]):
        raise BadInput("no command is given: write it after --, as in -- torchrun ...")
    report(*diagnose(command, args.steps))


if __name__ == "__main__":
    main()
