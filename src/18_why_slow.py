"""Find out why a distributed run is slow: where do its steps spend their time?

    python src/18_why_slow.py -- \\
        torchrun --standalone --nproc-per-node=2 src/05_ddp_spawn.py ...
    python src/18_why_slow.py --steps 50 -- python src/05_ddp_spawn.py 5 5

It runs the command for a few steps as it is, then without communication, and with
fewer threads if there are more than cores. It names the largest loss and its cure.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean
from subprocess import STDOUT

from common.distributed import BadInput, Parser, log, one_line_errors, positive_int

WATCH = Path(__file__).parent / "common" / "step_watch.py"
WARM_UP, FEWEST = 3, 5  # steps that don't count, and steps that must
WORTH_NAMING = 0.25  # of a step: what is less is no reason to change anything

OWN = ("data", "loop", "compute")  # what a rank does without the others
ALL = (*OWN, "saving", "communication")

# [start cures]
# loss -> what it means, and its cure
CURES = {
    "data": "the loop waits for the next batch. Lesson 17: workers of the DataLoader",
    "loop": "between two steps the ranks do something else. Profile it: lesson 01",
    "saving": "snapshots take this long. Save less often, or shards: lesson 16",
    "imbalance": "all ranks wait for {who}. Give all the same work: lesson 17",
    "cores": "{ranks} ranks share {cores} core(s). Bind each to its own: lesson 09",
    "threads": "{threads} threads, {cores} core(s). Set OMP_NUM_THREADS: lesson 07",
    "short step": "{compute:.1f} ms of work hide no message. Larger batches: lesson 05",
    "small messages": "{calls:.0f} of {kb:.1f} KB each. Send them as one: lesson 05",
    "every micro-batch": "{backwards:.0f} reductions in a step. no_sync(): lesson 17",
    "bandwidth": "{mb:.1f} MB in a step. Measure the link: lesson 08; send less: 17",
}
# [end cures]


def run(command: list[str], steps: int, **plan) -> list[dict]:
    """What each rank measured in a few steps of the command; by rank."""
    with tempfile.TemporaryDirectory(prefix="why_slow_", dir=".") as name:
        folder = Path(name).resolve()
        shutil.copy(WATCH, folder / "sitecustomize.py")
        plan = {"steps": steps, "silent": False, "threads": 0} | plan
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        path = os.pathsep.join(filter(None, [str(folder), os.getenv("PYTHONPATH")]))
        env, pipe = os.environ | {"PYTHONPATH": path}, subprocess.PIPE
        try:
            done = subprocess.run(command, env=env, stdout=pipe, stderr=STDOUT)
        except OSError as error:
            raise BadInput(f"cannot start {command[0]}: {error.strerror}") from None
        found = [json.loads(path.read_text()) for path in folder.glob("rank_*.json")]
    if done.returncode:
        print(done.stdout.decode(errors="replace")[-3000:], file=sys.stderr)
        raise BadInput(f"the command ended with status {done.returncode}: repair it")
    if not found or min(len(rank["steps"]) for rank in found) < WARM_UP + FEWEST:
        least = f"{WARM_UP + FEWEST} optimizer steps in a process group"
        raise BadInput(f"the command took fewer than {least}: let it train longer")
    return sorted(found, key=lambda rank: rank["rank"])


def seconds(rank: dict, *parts: str) -> list[float]:
    """Seconds of these parts in each step of a rank, without the warm-up."""
    return [sum(step.get(p, 0) for p in parts) for step in rank["steps"][WARM_UP:]]


# [start parts]
def over_ranks(choose, ranks: list[dict], *parts: str) -> float:
    """The mean step's seconds of these parts, on the rank that ``choose`` picks."""
    steps = zip(*(seconds(rank, *parts) for rank in ranks), strict=False)
    return mean(map(choose, steps))


def split(real: list[dict], silent: list[dict]) -> dict[str, float]:
    """Where the mean step of the real run goes, in seconds.

    Without communication each rank runs at its own pace. What every rank needs is
    work. What the slowest needs beyond that is imbalance, and what the real step needs
    beyond the slowest is communication that nothing hides.
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


# [end parts]
def crowded(ranks: list[dict]) -> tuple[int, int, int]:
    """(ranks, their threads, their cores) on the host with the fewest per rank."""
    counts = []
    for host in {rank["host"] for rank in ranks}:
        own = [rank for rank in ranks if rank["host"] == host]
        cores = len({core for rank in own for core in rank["cores"]})
        counts.append((len(own), sum(rank["threads"] for rank in own), cores))
    return max(counts, key=lambda count: (count[0] / count[2], count[1] / count[2]))


def slowest_rank(silent: list[dict]) -> str:
    """Who the others wait for, and in which part of a step."""
    steps = zip(*(seconds(rank, *OWN) for rank in silent), strict=False)
    last = [step.index(max(step)) for step in steps]
    worst = max(set(last), key=last.count)
    if last.count(worst) < 0.7 * len(last):
        return "another rank in each step"
    means = {part: [mean(seconds(rank, part)) for rank in silent] for part in OWN}
    spare = {part: values[worst] - min(values) for part, values in means.items()}
    return f"rank {worst}, in its {max(spare, key=spare.get)}"


def name_communication(silent: list[dict]) -> tuple[str, dict]:
    """Why it is exposed: what is sent, how often, and is size what it costs?"""
    counted = ("calls", "bytes", "backwards")
    facts = {what: mean(seconds(silent[0], what)) for what in counted}
    facts["kb"] = facts["bytes"] / max(facts["calls"], 1) / 1e3
    facts["mb"] = facts["bytes"] / 1e6
    smallest, usual = silent[0]["probe"]
    if usual < 2 * smallest:
        return "small messages" if facts["calls"] > 10 else "short step", facts
    return "every micro-batch" if facts["backwards"] > 1 else "bandwidth", facts


def diagnose(command: list[str], steps: int) -> tuple[dict[str, float], dict]:
    """The parts of a step, and what the sentences of CURES need."""
    log("Run 1: as it is")
    real = run(command, WARM_UP + steps)
    steps = min(len(rank["steps"]) for rank in real)
    log("Run 2: without communication")
    silent = run(command, steps, silent=True)
    parts, (ranks, threads, cores) = split(real, silent), crowded(real)
    if ranks <= cores:  # then something else uses them
        parts["compute"] += parts.pop("cores")
        if threads > cores and real[0]["on_cpu"]:
            log(f"Run 3: with {cores // ranks} thread(s) in each rank")
            spared = run(command, steps, threads=cores // ranks)
            whole = over_ranks(max, real, *ALL)
            share = min(over_ranks(max, spared, *ALL) / whole, 1)
            parts = {part: value * share for part, value in parts.items()}
            parts["threads"] = whole * (1 - share)
    name, facts = name_communication(silent)
    parts[name] = parts.pop("communication")
    facts |= {"ranks": ranks, "threads": threads, "cores": cores, "steps": steps}
    facts |= {"who": slowest_rank(silent), "compute": 1e3 * parts["compute"]}
    return parts, facts


def report(parts: dict[str, float], facts: dict) -> None:
    """Print the parts of a step, the largest loss and its cure."""
    whole = sum(parts.values())
    log(f"A step takes {1e3 * whole:.1f} ms; {facts['steps'] - WARM_UP} steps measured")
    for part, value in sorted(parts.items(), key=lambda item: -item[1]):
        log(f"  {part:<18} {1e3 * value:9.1f} ms {value / whole:6.0%}")
    share, largest = max((v / whole, p) for p, v in parts.items() if p != "compute")
    if share < WORTH_NAMING:
        return log(f"Healthy: no loss takes {WORTH_NAMING:.0%} of a step")
    log(f"Largest loss: {largest}, {share:.0%}: {CURES[largest].format(**facts)}")


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    steps = "steps to measure in each run (default: %(default)s)"
    parser.add_argument("--steps", type=positive_int, default=20, help=steps)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="after --: your run")
    args = parser.parse_args()
    args.command = args.command[args.command[:1] == ["--"] :]
    if not args.command:
        raise BadInput("no command is given: write it after --, as in -- torchrun ...")
    report(*diagnose(args.command, args.steps))


if __name__ == "__main__":
    main()
