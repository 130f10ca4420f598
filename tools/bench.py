"""Measure what the grader promises; prints ratios of one run, asserts nothing.

    python tools/bench.py            everything
    python tools/bench.py grader     only the parts whose name begins so
    python tools/bench.py check --against ../other_checkout   before and after, in turn

Times on a shared machine are noise: compare the ratios, which come from one run.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = (  # of most lessons one, with few checks and with many, all without Slurm
    "02_rank_arithmetic",
    "03_ring_all_reduce",
    "03_weighted_mean",
    "04_parallel_by_hand",
    "05_ddp_by_hand",
    "06_shard_stream",
    "12_balance",
    "13_stage_boundary",
    "14_row_linear",
    "15_zero_1",
    "17_no_sync",
    "22_combine",
)

DDP_CHECK = '''
import pytest, torch
import torch.distributed as dist
from workshop.grader import expect

@pytest.mark.ranks(4)
def test_answer(exercise, rank, seed):
    """One step of DDP leaves the same weights on all ranks."""
    torch.manual_seed(seed)
    model = exercise.step(torch.nn.Linear(8, 3), torch.randn(6, 8) + rank)
    expect.same_on_all_ranks(model.weight, "the weight")
'''
DDP_ANSWER = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def step(model, x):
    ddp_model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters())
    ddp_model(x).square().mean().backward()
    optimizer.step()
    return model
"""
DEADLOCK = """
import torch, torch.distributed as dist

def step(model, x):
    dist.recv(torch.zeros(1), (dist.get_rank() + 1) % dist.get_world_size())
"""
# The same check through torch.multiprocessing.spawn, as most courses grade it.
SPAWN = """
import sys, torch, torch.distributed as dist, torch.multiprocessing as mp
import torch.distributed.nn.functional  # before the group is made, or it outlives it
sys.path.insert(0, sys.argv[1])
import answer

def check(rank, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank,
                            world_size=4)
    torch.manual_seed(1)
    model = answer.step(torch.nn.Linear(8, 3), torch.randn(6, 8) + rank)
    weight = model.weight.detach().clone()
    dist.broadcast(weight, 0)
    assert torch.equal(weight, model.weight)
    dist.destroy_process_group()

if __name__ == "__main__":
    import time
    start = time.perf_counter()
    mp.spawn(check, (sys.argv[2],), nprocs=4)
    print(time.perf_counter() - start)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("only", nargs="?", default="", help="beginning of a part")
    against = "with `check`: another checkout, whose command runs in turn with ours"
    parser.add_argument("--against", type=Path, metavar="FOLDER", help=against)
    args = parser.parse_args()
    wanted = args.only
    if args.against and not (args.against / "workshop/cli.py").is_file():
        print(f"--against {args.against}: no checkout of this workshop, name one")
        return 2
    parts: dict[str, Callable[[Path], None]] = {
        "grader-warm": bench_warm,
        "grader-isolation": bench_isolation,
        "grader-cold": bench_cold,
        "check": lambda folder: bench_check(folder, args.against),
        "ddp": lambda folder: _tool("bench_ddp.py"),
        "gpt": lambda folder: _tool("bench_gpt.py"),
        "kills": lambda folder: _tool("bench_kills.py"),
    }
    chosen = {name: part for name, part in parts.items() if name.startswith(wanted)}
    if not chosen:
        print(f"no part begins with {wanted!r}: choose from {', '.join(parts)}")
        return 2
    for name, part in chosen.items():
        print(f"== {name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            part(Path(folder))
    return 0


def _tool(name: str) -> None:
    """Run a benchmark that is a program of its own."""
    subprocess.run([sys.executable, str(ROOT / "tools" / name)], cwd=ROOT)


def bench_warm(folder: Path) -> None:
    """A four-rank DDP check, warm, against the same through mp.spawn."""
    from workshop.grader.checks import checks_in
    from workshop.grader.engine.engine import Engine

    checks, answer = folder / "test_answer.py", folder / "answer.py"
    checks.write_text(DDP_CHECK)
    answer.write_text(DDP_ANSWER)
    (folder / "spawn.py").write_text(SPAWN)
    check = checks_in(checks)[0]
    with Engine() as engine:

        def grade(code: str) -> tuple[float, str]:
            start = time.perf_counter()
            verdict = engine.run_check(check, code, answer)
            return time.perf_counter() - start, verdict.kind.value

        grade(DDP_ANSWER)
        warm, spawned = [], []
        for number in range(15):
            seconds, kind = grade(DDP_ANSWER)
            assert kind == "right", kind
            warm.append(seconds)
            if number % 5 == 0:
                spawned.append(_spawn(folder, number))
        hang = [grade(DEADLOCK) for _ in range(3)]
    ours, theirs = statistics.median(warm), statistics.median(spawned)
    print(f"four ranks, one DDP step, warm: median {ours:.3f} s of {len(warm)}")
    print(f"the same through torch.multiprocessing.spawn: median {theirs:.2f} s")
    print(f"ratio: {theirs / ours:.0f}")
    print(f"deadlock: {', '.join(f'{kind} after {s:.2f} s' for s, kind in hang)}")


def bench_isolation(folder: Path) -> None:
    """What a world of its own costs: two forks that enter one, or do not."""
    from workshop.grader.engine import isolation

    def seconds(enter: bool) -> float:
        start = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            if enter:
                isolation.enter(str(folder), [])
            rank = os.fork()
            if rank == 0:
                if enter:
                    isolation.confine()
                os._exit(0)
            os.waitpid(rank, 0)
            os._exit(0)
        os.waitpid(pid, 0)
        return time.perf_counter() - start

    if why := isolation.probe():
        print(f"no world of its own here: {why}")
        return
    pairs = [(seconds(True), seconds(False)) for _ in range(50)]
    entered, plain = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"entered: median {1000 * entered:.1f} ms of 50, else {1000 * plain:.1f} ms")
    print(f"cost of a check: {1000 * (entered - plain):.1f} ms")


def _spawn(folder: Path, number: int) -> float:
    store = str(folder / f"store{number}")
    done = subprocess.run(
        [sys.executable, str(folder / "spawn.py"), str(folder), store],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def bench_cold(folder: Path) -> None:
    """A cold `workshop check` against `python -c "import torch"`."""
    from workshop.catalog import load_catalog

    catalog = load_catalog(ROOT)
    first = next((e for e in catalog if e.name.startswith("03")), catalog[0])
    name, solved = first.name, folder / "workshop"
    _solve(solved, [name])
    workshop = Path(sys.executable).parent / "workshop"
    imports, checks = [], []
    for _ in range(5):
        imports.append(_time([sys.executable, "-c", "import torch"], folder))
        checks.append(_time([str(workshop), "check", name], solved))
    ours, torch = statistics.median(checks), statistics.median(imports)
    print(f'python -c "import torch": median {torch:.2f} s')
    print(f"workshop check {name}, cold: median {ours:.2f} s, all checks")
    print(f"ratio: {ours / torch:.2f}")


def bench_check(folder: Path, against: Path | None) -> None:
    """Wall time of `workshop check` of right answers, and what of it the ranks took.

    The CPU time is that of the command and of the server's imports, without the ranks.
    """
    solved = folder / "workshop"
    _solve(solved, CHECKED)
    ratios, rests, imports = [], [], []
    for name in CHECKED:
        _check(solved, name, ROOT)  # reads files into memory
        wall, cpu, own = _check(solved, name, ROOT)
        line = f"{name}: {wall:.2f} s, in the grader {own:.2f} s, imports {cpu:.2f} s"
        rests.append(wall / own)
        if against:
            before, before_cpu, _ = _check(solved, name, against.resolve())
            ratios.append(wall / before)
            imports.append(cpu / before_cpu)
            line += f"; of before {wall / before:.2f}, imports {cpu / before_cpu:.2f}"
        print(line, flush=True)
    print(f"wall time of the ranks' own: median {statistics.median(rests):.2f} times")
    if against:
        print(f"of the wall time before: median {statistics.median(ratios):.2f}")
        print(
            f"of the imports' CPU time before: median {statistics.median(imports):.2f}"
        )


def _check(solved: Path, name: str, root: Path) -> tuple[float, float, float]:
    """(seconds, CPU seconds, what the command says that its checks took)."""
    command = [sys.executable, "-m", "workshop", "check", name]
    environment = os.environ | {"PYTHONPATH": str(root)}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=solved, env=environment, capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    told = re.search(r"checks?, ([0-9.]+) s", done.stdout)
    if done.returncode or told is None:
        raise SystemExit(f"workshop check {name}: {done.stdout}{done.stderr}")
    return seconds, cpu, float(told[1])


def _solve(folder: Path, names: Iterable[str]) -> None:
    """Put solved copies of exercises, and their checks, into ``folder``."""
    from workshop.catalog import find_exercise, load_catalog
    from workshop.skeleton import plain_solution

    for below in ("exercises", "tests/exercises", "solutions"):
        (folder / below).mkdir(parents=True)
    catalog_file = ROOT / "exercises" / "catalog.toml"
    (folder / "exercises/catalog.toml").write_text(catalog_file.read_text())
    catalog = load_catalog(ROOT)
    for exercise in (find_exercise(catalog, name) for name in names):
        solution = exercise.solution.read_text()
        (folder / "solutions" / exercise.file).write_text(solution)
        (folder / "exercises" / exercise.file).write_text(plain_solution(solution))
        checks = folder / exercise.checks.relative_to(ROOT)
        checks.parent.mkdir()
        checks.write_text(exercise.checks.read_text())


def _time(command: list[str], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
