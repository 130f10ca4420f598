"""What src/instruments/18_why_slow.py measures of slow_run.py, kept for the tests.

    python tests/scripts/slow_runs.py           # on a quiet machine: measure all again
    python tests/scripts/slow_runs.py REASON    # only this one

A busy machine is a reason of its own to be slow, so tests read slow_runs.json.
"""

import json
import os
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = HERE.parents[1] / "src/instruments/18_why_slow.py"
KEPT = HERE / "slow_runs.json"
sys.path.insert(0, str(PROGRAM.parents[1]))  # for its common/
# reason of slow_run.py -> what the program must name, and words of its sentence
REASONS = {
    "data": ("data", "waits for the next batch"),
    "workers": ("starved workers", "their 3 workers each share 2 core(s)"),
    "evaluation": ("sometimes", "rank 0 works alone in 2 of 8 steps"),
    "scalars": ("scalars", "6 messages of one number in a step"),
    "loop": ("loop", "between two steps"),
    "saving": ("saving", "snapshots"),
    "late_rank": ("imbalance", "rank 1, in its loop"),
    "slow_disk": ("imbalance", "rank 0, in its data"),
    "long_texts": ("imbalance", "rank 1, in its compute"),
    "late_in_turn": ("imbalance", "another rank in each step"),
    "cores": ("cores", "2 ranks share 1 core"),
    "threads": ("threads", "OMP_NUM_THREADS"),
    "short_step": ("short step", "Larger batches"),
    "small_messages": ("small messages", "Send them as one"),
    "every_micro_batch": ("every micro-batch", "4 reductions in a step"),
    "bandwidth": ("bandwidth", "4.0 MB in a step"),
    "by_hand": ("bandwidth", "72.0 MB in a step"),
}
HEALTHY = "healthy"
STEPS = 8


def measure(reason: str) -> list[list[dict]]:
    """The runs that the program makes to find a reason."""
    program, runs = runpy.run_path(str(PROGRAM)), []
    run = program["run"]

    def keeping(*arguments, **plan):
        runs.append([rank | {"host": "here"} for rank in run(*arguments, **plan)])
        return runs[-1]

    program["diagnose"].__globals__["run"] = keeping
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, "--nproc-per-node=2", str(HERE / "slow_run.py"), reason]
    program["report"](*program["diagnose"](command, STEPS))
    return runs


def rounded(value):
    """Microseconds are enough."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    found = {}
    chosen = sys.argv[1:] or (*REASONS, HEALTHY)
    if sys.argv[1:]:
        found = json.loads(KEPT.read_text())
    for reason in chosen:
        print(f"== {reason}", flush=True)
        found[reason] = rounded(measure(reason))
    rows = ",\n".join(
        f"{json.dumps(reason)}: {json.dumps(runs, separators=(',', ':'))}"
        for reason, runs in found.items()
    )
    KEPT.write_text(f"{{\n{rows}\n}}\n")


if __name__ == "__main__":
    main()
