"""Try the programs with each release of PyTorch that can be had: make matrix.

    python tools/matrix.py                      # all of it: an hour, without downloads
    python tools/matrix.py --only starter       # what has this in its name
    python tools/matrix.py 2.8.0 2.14.1         # these releases
    python tools/matrix.py --show               # write the table again, run nothing

tools/torches.py makes the environments. What ran stays in .workshop/cache/torch as long
as the programs are unchanged, so an interrupted run continues where it was. The table
in docs/torch_versions.inc, which docs/setup.rst includes, has what was run, and nothing
else. Exit status: 0 all that ran succeeded or was refused in a sentence; 1 not all.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # for `python tools/matrix.py`

from common import torch_versions  # noqa: E402
from tests import warm  # noqa: E402
from tools import debian_packages, readme_commands, torches  # noqa: E402

TABLE = ROOT / "docs" / "torch_versions.inc"
TORCHRUN = "torchrun --standalone --nproc-per-node=2"
STARTER = "1 --batch-size 256 --workers 0 --log-every 5"
STARTERS = {
    f"{name}, {ranks}": f"{launcher} src/starter/{name} {STARTER}"
    for name in ("train_ddp.py", "train_fsdp.py")
    for ranks, launcher in (("1 process", "python"), ("2 ranks", TORCHRUN))
}
# Two tasks of a step as srun starts them, without Slurm
AS_SRUN = """
export MASTER_ADDR=127.0.0.1 MASTER_PORT SLURM_STEP_ID=0 SLURM_NTASKS=2
export SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2
MASTER_PORT=$(python -c 'import socket; s = socket.socket(); s.bind(("", 0))
print(s.getsockname()[1])')
for task in 0 1; do
  SLURM_PROCID=$task SLURM_LOCALID=$task python src/09_srun.py 2 2 &
  tasks+=($!)
done
wait "${tasks[0]}"
wait "${tasks[1]}"
"""
MORE = {  # programs whose commands aren't in the table of src/README.md
    "03_wire_bytes.py": f"{TORCHRUN} src/instruments/03_wire_bytes.py",
    "09_srun.py": AS_SRUN,
}
# Tests that submit job scripts to Slurm and PBS: each launcher, on two nodes and more.
TEST = "WORKSHOP_FULL=1 python -m pytest -q -p no:cacheprovider -p tools.strict_skips"
JOBS = {
    "jobs on Slurm": f"{TEST} tests/jobs/test_09_slurm_training.py -k as_one_device",
    "jobs on PBS": f"{TEST} tests/jobs/test_pbs_scripts.py -k as_one_device",
    "jobs with train_ddp.py": (
        f"{TEST} tests/jobs/test_starter.py -k 'under_each_launcher and train_ddp'"
    ),
}
# Solutions of the exercises, checked by the grader; some need no torch of their own.
GRADED = ("01_resume", "03_ring_all_reduce", "05_sampler", "07_survive_a_kill")
COLUMNS = {  # title -> the names of what it counts
    "train_ddp.py": r"train_ddp",
    "train_fsdp.py": r"train_fsdp",
    "lessons 01 to 09": r"0\d_\w+\.py",
    "lesson 12": r"12_\w+\.py",
    "lessons 13 to 20": r"(1[3-9]|20)_\w+\.py",
    "lessons 21 to 23": r"2[1-3]_\w+\.py",
    "job scripts": r"jobs ",
    "solutions": r"solution ",
}
OK, REFUSED, SLOW = "ok", "refused", "still running"
SENTENCE = re.compile(
    r"error: this is PyTorch \S+, and it needs \S+ or newer"
    r"|torch \S+ is too old, the grader needs \S+ or newer"
)


@dataclass
class Result:
    """What became of one command with one release."""

    torch: str  # as it names itself, such as 2.8.0+cu128
    name: str
    outcome: str  # OK, REFUSED, or the last line that was printed
    date: str
    inputs: str  # a hash of what ran


def scripts() -> dict[str, str]:
    """Name -> lines of bash, in the order in which they run."""
    found = dict(STARTERS)
    names = {*readme_commands.COMMANDS, *MORE}
    for name in sorted(names):
        found[name] = MORE.get(name) or readme_commands.small_script(name)
    found.update(JOBS)
    for name in GRADED:
        found[f"solution {name}"] = f"python -m pytest --solutions -q -k {name}"
    return found


def inputs(name: str, script: str) -> str:
    """A hash of what the result of a command depends on, apart from torch."""
    patterns = [f"src/**/{path}" for path in re.findall(r"\w+\.py", script)]
    patterns += ["gallery/*.py"] if "gallery/" in script else []
    if name in JOBS:
        patterns = ["job_scripts/*.sbatch", "job_scripts/*.pbs", "job_scripts/sites/*"]
        patterns += ["job_scripts/site_environment.sh", "src/common/**/*.py"]
        patterns += ["src/0[1589]_*.py", "src/starter/*.py"]
    elif name.startswith("solution "):
        patterns = ["workshop/**/*.py", "solutions/*.py", "tests/exercises/*/checks.py"]
    elif "starter/" not in script:
        patterns.append("src/common/**/*.py")
    digest = hashlib.sha256(script.encode())
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            if path.name != "torch_versions.py":  # of all programs, one's own matters
                digest.update(path.read_bytes())
    if name[:2].isdigit():
        on_a_cpu = name in torch_versions.SHARDED
        digest.update(repr((torch_versions.needed(name), on_a_cpu)).encode())
    return digest.hexdigest()[:16]


@contextmanager
def warmed(python: Path) -> Iterator[Path]:
    """A Python that has imported torch when it starts, as in tests (tests/warm)."""
    if not warm.is_possible():
        yield python
        return
    with closing(warm.WarmPython(python)) as session:
        yield session.bin / "python"


def run(python: Path, name: str, script: str, limit: int) -> str:
    """The outcome of a command in a folder of its own."""
    expected = readme_commands.FAILS.get(name, 0)
    path = f"{python.parent}:{os.environ['PATH']}"
    more = {"PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        for part in ("src", "gallery"):
            (Path(folder) / part).symlink_to(ROOT / part)
        where = ROOT if "-m pytest" in script else folder
        process = subprocess.Popen(
            ["bash", "-ec", script],
            cwd=where,
            env={**os.environ, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            _end(process)
            return f"{SLOW} after {limit} s"
        except BaseException:
            _end(process)
            raise
    if SENTENCE.search(printed):  # first, as some commands are expected to fail
        return REFUSED
    if process.returncode == expected and "FutureWarning" not in printed:
        return OK
    return last_words(printed)


def _end(process: subprocess.Popen[str]) -> None:
    """End a command; torchrun ends its ranks, which have sessions of their own."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=60)  # torchrun gives them 30 seconds
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def last_words(printed: str) -> str:
    """The line that says why a command failed, as far as one line can."""
    errors = re.findall(
        r"^(?:\[rank\d+\]: )?(\w+(?:Error|Warning): .+)$", printed, re.M
    )
    errors = [line for line in errors if "ChildFailed" not in line]
    others = [line for line in printed.splitlines() if line.strip("= ")]
    lines = errors or others or ["no output"]
    return lines[-1].strip()[:160]


class Notes:
    """The results so far, kept in a file for each release."""

    def __init__(self) -> None:
        self.folder = torches.FOLDER / "results"
        self.folder.mkdir(parents=True, exist_ok=True)

    def of(self, version: str) -> list[Result]:
        path = self.folder / f"{version}.json"
        entries = json.loads(path.read_text("utf-8")) if path.exists() else []
        return [Result(**one) for one in entries]

    def add(self, version: str, result: Result) -> None:
        """Keep it, in place of an older one."""
        others = [one for one in self.of(version) if one.name != result.name]
        text = json.dumps([asdict(one) for one in (*others, result)], indent=1)
        path = self.folder / f"{version}.json"
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)  # one that is interrupted leaves the others

    def valid(self, all_scripts: dict[str, str]) -> list[Result]:
        """Those of commands and programs that are as they were."""
        now = {name: inputs(name, script) for name, script in all_scripts.items()}
        results = [
            one for path in self.folder.glob("*.json") for one in self.of(path.stem)
        ]
        return [one for one in results if now.get(one.name) == one.inputs]


def torch_of(python: Path) -> str:
    code = "import torch; print(torch.__version__)"
    command = [python, "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.strip()


def order(result: Result) -> tuple[int, ...]:
    return tuple(int(part) for part in result.torch.split("+")[0].split("."))


def cell(results: list[Result]) -> str:
    """How many commands of a column did what they should."""
    if not results:
        return "not run"
    good = sum(one.outcome == OK for one in results)
    refused = sum(one.outcome == REFUSED for one in results)
    if good == len(results):
        return f"{good} of {good}"
    if refused == len(results):
        return "refused"
    return f"{good} of {len(results)}" + f", {refused} refused" * bool(refused)


def table(results: list[Result], all_scripts: dict[str, str]) -> str:
    """What docs/setup.rst includes."""
    dates = sorted(one.date for one in results)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    lines = [
        ".. `make matrix` writes this file.",
        "",
        f"Run on {when} with Python {platform.python_version()} on a CPU "
        f"({platform.system()}, {platform.machine()}), two ranks, gloo:",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "",
        *_row(["PyTorch", *COLUMNS]),
    ]
    troubles = []
    for release in sorted({(order(one), one.torch) for one in results}, reverse=True):
        own = [one for one in results if one.torch == release[1]]
        cells = [
            cell([one for one in own if re.match(pattern, one.name)])
            for pattern in COLUMNS.values()
        ]
        lines += _row([release[1], *cells])
        troubles += [one for one in own if one.outcome not in (OK, REFUSED)]
    lines += [
        "",
        "Each number counts commands that did what they should, of those that were",
        'run. "Refused": the program said in one sentence which PyTorch it needs.',
        '"Job scripts" are those of Slurm and PBS with each launcher, as tests submit',
        "them on two nodes and more, in three groups.",
    ]
    for one in troubles:
        words = one.outcome.replace("`", "'").replace("\\", "/")
        lines += ["", f"* {one.torch}, ``{one.name}``: ``{words}``"]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> list[str]:
    first, *others = (f"``{one}``" if one.endswith(".py") else one for one in cells)
    return [f"   * - {first}", *(f"     - {one}" for one in others)]


def plan(only: str, all_scripts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The commands to run here; job scripts need the packages of the schedulers."""
    missing = debian_packages.missing()
    if missing:
        packages = " ".join(missing)
        print(f"matrix: no job scripts without {packages}", file=sys.stderr)
    for name, script in all_scripts.items():
        if re.search(only, name) and not (missing and name in JOBS):
            yield name, script


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    parser.add_argument("--only", default="", metavar="REGEX", help="of the names")
    parser.add_argument("--limit", type=int, default=300, help="seconds per command")
    parser.add_argument("--show", action="store_true", help="run nothing")
    args = parser.parse_args()
    notes, all_scripts = Notes(), scripts()
    for version in [] if args.show else args.versions or torches.VERSIONS:
        try:
            python = torches.make(version)
        except torches.Missing as error:
            print(f"matrix: {error}", file=sys.stderr)
            continue
        torch = torch_of(python)
        done = {
            (one.torch, one.name)
            for one in notes.valid(all_scripts)
            if not one.outcome.startswith(SLOW)  # perhaps the machine was busy
        }
        missing = [
            (name, script)
            for name, script in plan(args.only, all_scripts)
            if (torch, name) not in done
        ]
        if not missing:
            continue
        with warmed(python) as warm_python:
            for name, script in missing:
                outcome = run(warm_python, name, script, args.limit)
                today = datetime.date.today().isoformat()
                hashed = inputs(name, script)
                notes.add(version, Result(torch, name, outcome, today, hashed))
                print(f"{torch:>14}  {name:28} {outcome}", flush=True)
    results = notes.valid(all_scripts)
    if not results:
        print("matrix: nothing was run, so there is no table", file=sys.stderr)
        return 1
    TABLE.write_text(table(results, all_scripts), encoding="utf-8")
    bad = [one for one in results if one.outcome not in (OK, REFUSED)]
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
