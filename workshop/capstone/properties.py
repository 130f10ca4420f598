"""What the capstone asks for: each property with its points, and what is missing.

A property is a function of the two runs that returns one sentence, or "" if all is as
asked for. They are asked in this order, and each answers for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workshop.capstone import checkpoints, own_code
from workshop.capstone.accounting import missing_of
from workshop.capstone.evidence import ACCOUNTING, MANIFEST, Attempt, Run
from workshop.capstone.unbroken import hash_of

NODES = 4
ALLOWED = 0.05  # share of the counted bytes by which a prediction may be off
TOLERANCE = 0.01  # nats per byte; docs/lessons/20_capstone/4_graded.rst says why


@dataclass(frozen=True)
class Runs:
    """Both runs, and the folder of the workshop, which has the program."""

    undisturbed: Run
    disturbed: Run
    root: Path

    @property
    def both(self) -> tuple[Run, Run]:
        return self.undisturbed, self.disturbed

    @property
    def plan(self) -> dict[str, int]:
        return self.undisturbed.started["plan"]

    @property
    def whole(self) -> list[Attempt]:
        """The attempts that had all nodes: those that began a run."""
        return [run.attempts[0] for run in self.both]


def of_this_program(runs: Runs) -> str:
    for run in runs.both:
        for attempt in run.attempts:
            for name, seen in attempt.start["code"].items():
                src = (runs.root / "src").resolve()
                path = (src / name).resolve()
                here = path.is_relative_to(src) and path.is_file()
                if not here or hash_of(path) != seen:
                    return (
                        f"The {run.name} run used another src/{name} than the one "
                        "here: run both jobs with one version of the program."
                    )
    return ""


def by_own_code(runs: Runs) -> str:
    return own_code.missing(runs.both, runs.root)


def on_four_nodes(runs: Runs) -> str:
    for run in runs.both:
        hosts = run.attempts[0].hosts
        if len(hosts) < NODES:
            nodes = "one node" if len(hosts) == 1 else f"{len(hosts)} nodes"
            return (
                f"The {run.name} run began on {nodes} ({', '.join(hosts)}): it must "
                f"begin on {NODES}."
            )
    return ""


def as_planned(runs: Runs) -> str:
    if not runs.plan:
        return "The undisturbed run has no plan: give the program your file as --plan."
    if runs.plan != runs.disturbed.started["plan"]:
        return "The two runs have different plans: run both with the same file."
    planned = {axis: runs.plan.get(f"{axis}_ranks", 0) for axis in ("data", "tensor")}
    words = " x ".join(f"{axis} {ranks}" for axis, ranks in planned.items())
    if min(planned.values()) < 2:
        return f"The plan is {words}: use two or more ranks along each axis."
    for run in runs.both:
        if run.attempts[0].grid != planned:
            ran = run.attempts[0].layout
            return f"The plan is {words}, and the {run.name} run began with {ran}."
    return ""


def memory_as_predicted(runs: Runs) -> str:
    predicted = runs.plan.get("bytes_on_rank_0", 0)
    if not predicted:
        return "The plan predicts no bytes_on_rank_0."
    counted = runs.whole[0].memory.get("held", [0])[0]
    if abs(predicted - counted) > ALLOWED * counted:
        how = "more"
        if predicted > counted:
            how = "fewer"
        return (
            f"The plan predicts {predicted:,} bytes on rank 0, and the run counted "
            f"{how}: what does the tensor axis not cut?"
        )
    return ""


def in_bfloat16(runs: Runs) -> str:
    for run in runs.both:
        for attempt in run.attempts:
            seen = attempt.memory.get("dtypes", ["torch.bfloat16"])
            if seen != ["torch.bfloat16"]:
                return (
                    f"The {run.name} run multiplied in {', '.join(map(str, seen))}: "
                    "give the program --mixed-precision."
                )
    return ""


def survived(runs: Runs) -> str:
    run = runs.disturbed
    if len(run.attempts) < 2:
        return "The disturbed run was started once: switch a node off while it trains."
    lost, again = run.attempts[0], run.attempts[1]
    if lost.end:
        return "The disturbed run was complete before it was started again."
    if lost.start["job"] != again.start["job"] or not restarts(run):
        return (
            "The disturbed run was continued by another job: the first must go back "
            "into the queue without you, and accounting.txt must show its restart."
        )
    if not again.first:
        return (
            "After the loss, the disturbed run started from scratch: no checkpoint was "
            "complete."
        )
    newest = max(map(checkpoints.steps_of, lost.checkpoints), default=0)
    if again.first < newest:
        return (
            f"The disturbed run resumed after {again.first} steps, although "
            f"checkpoint-{newest} was complete."
        )
    return ""


def restarts(run: Run) -> int:
    return int(run.accounting.get("restarts", 0))


def each_step_once(runs: Runs) -> str:
    for run in runs.both:
        data = run.history("data")
        steps = run.started["sizes"].get("steps", 0)
        if missing := sorted(set(range(steps)) - set(data)):
            return f"The {run.name} run has no step {missing[0]} of {steps}."
        first: dict[float, int] = {}
        for step, piece in sorted(data.items()):
            if piece in first:
                return (
                    f"The {run.name} run trained on the batch of step {first[piece]} "
                    f"again in step {step}: a resumed run continues with the next data."
                )
            first[piece] = step
    return ""


def same_loss(runs: Runs) -> str:
    one, other = (run.history("losses") for run in runs.both)
    if not one or one.keys() != other.keys():
        return "The two runs did not train the same steps: their losses can't compare."
    for step, loss in sorted(other.items()):
        if not abs(loss - one[step]) <= TOLERANCE:  # neither is a nan
            return (
                f"From step {step} on, the losses differ by more than {TOLERANCE}: "
                f"{loss:.4f} instead of {one[step]:.4f}. Was all state resumed?"
            )
    ends = [run.attempts[-1].end.get("test_loss", 0.0) for run in runs.both]
    if not abs(ends[0] - ends[1]) <= TOLERANCE:
        return f"The test losses are {ends[0]:.4f} and {ends[1]:.4f}."
    return ""


def distance(runs: Runs) -> str:
    """How far the losses are apart before and after the disturbed run was resumed."""
    one, other = (run.history("losses") for run in runs.both)
    resumed = runs.disturbed.attempts[-1].first
    parts = [0.0], [0.0]
    for step in one.keys() & other.keys():
        parts[step >= resumed].append(abs(one[step] - other[step]))
    before, after = map(max, parts)
    return (
        f"Up to step {resumed} the losses of the two runs differ by {before:.2g} at "
        f"most, from there on by {after:.2g}."
    )


def on_another_layout(runs: Runs) -> str:
    layouts = [attempt.layout for attempt in runs.disturbed.attempts]
    if len(set(layouts)) < 2:
        return (
            f"The disturbed run had the layout {layouts[0]} all the time: let it "
            "resume on the nodes that are left."
        )
    return ""


def status_is_true(runs: Runs) -> str:
    return next(filter(None, map(status_is_true_of, runs.both)), "")


def status_is_true_of(run: Run) -> str:
    account, ended = run.accounting, bool(run.attempts[-1].end)
    where = f"{run.name}/{ACCOUNTING}"
    if missing := missing_of(where, run.told, account, job_of(run)):
        return missing
    nodes, hosts = account.get("nodes", ""), run.attempts[-1].hosts
    if nodes.isdigit() and int(nodes) < len(hosts):
        return f"{where} counts {nodes} of the {len(hosts)} hosts in {MANIFEST}."
    good = account["state"] in ("COMPLETED", "F") and account["status"] in ("0:0", "0")
    if good and not ended:
        return f"The {run.name} job reports success, but training did not end."
    if not good:
        how = f"as {account['state']} with the exit status {account['status']}"
        return f"The {run.name} job ended {how}."
    return ""


def job_of(run: Run) -> str:
    return run.attempts[-1].start["job"]


PROPERTIES: dict[str, tuple[int, Callable[[Runs], str]]] = {
    "both runs by the program that is here": (5, of_this_program),
    "laid out, saved and resumed by your code": (20, by_own_code),
    "trained on four nodes": (5, on_four_nodes),
    "layout as planned, two axes": (5, as_planned),
    "memory as predicted, within 5 %": (10, memory_as_predicted),
    "computed in bfloat16": (5, in_bfloat16),
    "checkpoints sharded, in the background": (10, lambda r: checkpoints.good(r.both)),
    "survived the loss of a node": (15, survived),
    "each step's data once": (5, each_step_once),
    "loss of the undisturbed run": (10, same_loss),
    "resumed on another layout": (5, on_another_layout),
    "exit status true": (5, status_is_true),
}
