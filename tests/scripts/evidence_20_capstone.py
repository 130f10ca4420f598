"""Evidence of the capstone as two right runs leave it, without the minutes of a run.

    runs = two_runs()                 # what the program adds to each manifest
    runs["disturbed"].events[0] ...   # a run that went otherwise
    write(folder, runs)               # in one chain of hashes, with its checkpoints
    gaps(folder)                      # what the judge finds missing

The transcript 20_capstone judges what real jobs leave.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from click.testing import CliRunner

from common.manifest import Manifest, hashes
from workshop.capstone.judge import judge
from workshop.capstone.unbroken import hash_of
from workshop.cli import cli

ROOT = Path(__file__).resolve().parents[2]
STEPS, EVERY, NUMEL, HELD = 12, 4, 100, 5000
PLAN = {"nodes": 4, "ranks_per_node": 2, "data_ranks": 4, "tensor_ranks": 2}
OWN = "solutions/20_capstone.py"  # the exercise is a skeleton here
PLAN |= {"save_every": EVERY, "bytes_on_rank_0": HELD}
ACCOUNTING = (
    "JobId={job} JobName=capstone\n   JobState={state} Reason=None\n"
    "   Requeue=1 Restarts={restarts} BatchFlag=1 ExitCode={status}\n"
)
OF_PBS = (
    "Job Id: {job}\n    job_state = F\n    run_count = {starts}\n"
    "    Exit_status = {status}\n"
)
OF_TRACEJOB = (
    "\nJob: {job}\n\n"
    "11/25/2026 10:00:07  S    Job Run at request of Scheduler@head on exec_vhost "
    "(n1:ncpus=2)+(n2:ncpus=2)\n"
    "11/25/2026 10:03:11  A    user=ada group=users project=_pbs_project_default "
    "jobname=capstone queue=workq session=4711 end=1795600991 Exit_status={status} "
    "resources_used.walltime=00:03:04 run_count={starts}\n"
)
OF_SACCT = "JobID|JobName|State|ExitCode|NodeList|NNodes|Start|End\n"
LOST = (  # a job and its steps, as --duplicates adds them for each return to the queue
    "{job}|capstone|NODE_FAIL|0:0|n[1-4]|4|2026-11-25T10:00:07|2026-11-25T10:01:02\n"
    "{job}.batch|batch|CANCELLED|0:15|n1|1|2026-11-25T10:00:07|2026-11-25T10:01:02\n"
    "{job}.0|task.sh|FAILED|9:0|n[1-4]|4|2026-11-25T10:00:09|2026-11-25T10:00:52\n"
)
LAST = (
    "{job}|capstone|{state}|{status}|n[1-2,4,6]|4|2026-11-25T10:01:09|"
    "2026-11-25T10:03:11\n"
    "{job}.batch|batch|COMPLETED|0:0|n1|1|2026-11-25T10:01:09|2026-11-25T10:03:11\n"
    "{job}.extern|extern|COMPLETED|0:0|n[1-2,4,6]|4|2026-11-25T10:01:09|"
    "2026-11-25T10:03:11\n"
    "{job}.0|task.sh|COMPLETED|0:0|n[1-2,4,6]|4|2026-11-25T10:01:11|"
    "2026-11-25T10:03:10\n"
)


@dataclass
class Played:
    """One run: its events, what the scheduler says of it, and whether that is there."""

    events: list
    job: str
    restarts: int
    state: str = "COMPLETED"
    status: str = "0:0"
    accounting: str = ACCOUNTING

    def of(self, kind):
        """The facts of all events of a kind."""
        return [facts for name, facts in self.events if name == kind]

    def account(self):
        words = {"job": self.job, "state": self.state, "status": self.status}
        words |= {"restarts": self.restarts, "starts": self.restarts + 1}
        return self.accounting.format(**words)


def start(run, job, nodes, first=0):
    hosts = [f"n{node}" for node in range(1, nodes + 1) for _ in range(2)]
    program = ROOT / "src" / "20_capstone.py"
    facts = {"run": run, "job": job, "plan": dict(PLAN), "hosts": hosts}
    facts |= {"grid": {"data": nodes, "tensor": 2}, "first": first}
    facts |= {"save": {"every": EVERY, "background": True}}
    facts |= {"sizes": {"batch": 24, "steps": STEPS}}
    facts |= {"own": {"file": OWN, "sha256": hash_of(ROOT / OWN)}}
    facts |= {"code": {program.name: sha256(program.read_bytes()).hexdigest()}}
    return "start", facts | {"resumed": {}}


def steps(first, end):
    """Losses that differ a little from one run to the next, as reductions do."""
    losses = [5.0 - 0.1 * step + 1e-5 * first for step in range(first, end)]
    data = [1000 + step for step in range(first, end)]
    return "steps", {"first": first, "losses": losses, "data": data}


def memory(nodes):
    held = [HELD + 8 * (4 - nodes)] * 2 * nodes
    return "memory", {"held": held, "numel": NUMEL, "dtypes": ["torch.bfloat16"]}


def checkpoint(after, ranks):
    shards = {
        f"__{rank}_0.distcp": bytes([rank, after]) * (6 * NUMEL // ranks + 1)
        for rank in range(ranks)
    }
    shards[".metadata"] = b"what is where"
    return "checkpoint", {"name": f"checkpoint-{after}", "files": shards}


def two_runs():
    """A run to which nothing happens, and one that loses a node after six steps."""
    end = "end", {"steps": STEPS, "test_loss": 3.8}
    undisturbed = [start("a1", "7", 4), memory(4), steps(0, 6), checkpoint(4, 8)]
    undisturbed += [steps(6, 12), checkpoint(8, 8), checkpoint(12, 8), end]
    disturbed = [start("b2", "8", 4), memory(4), steps(0, 6), checkpoint(4, 8)]
    disturbed += [start("b2", "8", 3, first=4), memory(3), steps(4, 12)]
    disturbed += [checkpoint(8, 6), checkpoint(12, 6), ("end", {**end[1]})]
    return {
        "undisturbed": Played(undisturbed, "7", 0),
        "disturbed": Played(disturbed, "8", 1),
    }


def write(folder, runs):
    """Leave the evidence of these runs in a folder."""
    for name, run in runs.items():
        place = folder / name
        place.mkdir(parents=True)
        write_manifest(place, run)
        if run.accounting:
            (place / "accounting.txt").write_text(run.account())
    return folder


def write_manifest(place, run):
    manifest = Manifest(place / "manifest.jsonl")
    for kind, facts in run.events:
        if kind == "checkpoint":
            saved = place / facts["name"]
            saved.mkdir()
            for file, content in facts["files"].items():
                (saved / file).write_bytes(content)
            facts = {**facts, "files": hashes(saved)}
        if kind == "start" and facts["first"] and not facts["resumed"]:
            facts["resumed"] = hashes(place / f"checkpoint-{facts['first']}")
        manifest.add(kind, **facts)
    (place / "log.txt").write_text(f"Manifest sealed: {manifest.seal()}\n")


def gaps(folder):
    """Property -> sentence of what is missing."""
    return {
        each.name: each.missing for each in judge(folder, ROOT).judged if each.missing
    }


def command(folder):
    """``workshop capstone FOLDER``"""
    return CliRunner().invoke(cli, ["capstone", str(folder)], prog_name="workshop")
