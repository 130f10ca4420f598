"""``workshop diagnose`` reads a log with the marks of a launcher as without them.

`make test` tries each launcher's marks on every third log, and each log with marks of
every third launcher; `make nightly` tries all of them.
"""

from __future__ import annotations

from functools import cache
from unittest import mock

import pytest

from tests.grader.test_diagnose import HERE, ROOT
from workshop.diagnose import report
from workshop.diagnose.causes import candidates, load
from workshop.diagnose.first import first_failed
from workshop.diagnose.logs import read_logs
from workshop.diagnose.report import diagnose, named

OTHERS = 3  # each prefix stands before one log of so many; at night, before all
CAUSES = load(ROOT)
HEALTHY = HERE.parent / "healthy_logs"
LOGS = sorted([*HERE.glob("*.txt"), *HEALTHY.glob("*.txt")]) + sorted(
    path
    for path in (ROOT / "docs/transcripts").glob("19_*.txt")
    if "_tool_" not in path.name
)
# {n} counts the lines
PREFIXES = {
    "torch": "[rank3]: ",
    "torchrun --tee": "[default3]:",
    "srun --label": "3: ",
    "mpirun --tag-output": "[1,3]<stderr>:",
    "pdsh": "node-07: ",
    "pdsh without a digit": "headnode: ",
    "Ray": "(Worker pid=4711) ",
    "Ray on another node": "(RayTrainWorker pid=285, ip=192.168.177.12) ",
    "vLLM": "(EngineCore_DP0 pid=1088) (RayWorkerWrapper pid=285, ip=10.0.0.2) ",
    "Kubernetes": "2026-11-26T10:00:00.{n:09d}Z ",
    "a container runtime": "2026-11-26T10:00:00.{n:09d}Z stderr F ",
    "kubectl --prefix": "[pod/train-worker-0/pytorch] ",
    "docker compose": "worker-1  | ",
    "asctime": "2026-11-26 10:00:00,{n:03d} ",
    "asctime and level": "2026-11-26 10:00:00,{n:03d} INFO ",
    "logging, as people set it": "2026-11-26 10:00:00,{n:03d} - train - INFO - ",
    "DeepSpeed": "[2026-11-26 10:00:00,{n:03d}] [INFO] [launch.py:319:tell] ",
    "basicConfig": "INFO:train:",
    "host and rank": "[gpu12:5] ",
    "Intel MPI's mpirun -l": "[3] ",
    "SageMaker's mpirun": "[1,mpirank:3,algo-2]<stderr>:",
    "syslog": "Jul 19 03:20:58 cn-244 train[4121]: ",
    "Determined": "[2024-02-27T21:35:32.{n:06d}Z] fa88a9df || ",
    "Determined with a rank": "[2024-02-27T21:35:32.{n:06d}Z] fa88a9df || [rank=3] ",
    "CloudWatch": "2024-12-04T05:27:39.{n:03d}Z | algo-2 | ",
    "a program": "[rank 3] ",
}


def answer(path):
    """(the named cause or None, the candidates, whether it is called healthy)."""
    log = read_logs([str(path)])
    first = first_failed(log)
    found = candidates(CAUSES, log, first)
    sure = named(found)
    # it would search for both once more
    known = {"first_failed": lambda _: first, "candidates": lambda *_: found}
    with mock.patch.multiple(report, **known):
        told, _ = diagnose(log, ROOT)
    listed = [] if sure else sorted(each.cause.name for each in found)
    return sure and sure.cause.name, listed, told[0].startswith("No failure")


plain_answer = cache(answer)


@pytest.mark.parametrize("each", [OTHERS, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kind", PREFIXES)
def test_every_log_gets_the_same_answer_with_these_marks(kind, each, tmp_path):
    other = {}
    place = list(PREFIXES).index(kind)
    for path in LOGS[place % each :: each]:
        rows = path.read_text(encoding="utf-8").splitlines()
        marked = tmp_path / path.name
        marked.write_text(
            "".join(
                PREFIXES[kind].format(n=number) + f"{row}\n"
                for number, row in enumerate(rows)
            )
        )
        plain, prefixed = plain_answer(path), answer(marked)
        if plain != prefixed:
            other[path.name] = plain, prefixed
    assert other == {}


def ranks(tmp_path, text):
    path = tmp_path / "log.txt"
    path.write_text(text)
    return [line.rank for line in read_logs([str(path)]).lines]


RAISED = "[{0}] Traceback (most recent call last):\n[{0}] ValueError: label 7 of 5\n"


def test_numbers_in_brackets_are_ranks_where_tracebacks_have_them(tmp_path):
    assert ranks(tmp_path, RAISED.format(0) + RAISED.format(1)) == [0, 0, 1, 1]


def test_numbers_in_brackets_that_only_grow_may_be_steps(tmp_path):
    assert ranks(tmp_path, "[1] loss 0.3\n[2] loss 0.2\n[3] loss 0.2\n") == [None] * 3


def test_number_of_a_process_beside_a_host_is_no_rank(tmp_path):
    text = "[n1:07356] *** An error occurred\n[n1:12255] *** An error occurred\n"
    assert ranks(tmp_path, text) == [None, None]


def test_labels_that_begin_below_the_output_of_the_script_are_ranks(tmp_path):
    head = "Loading modules\nCUDA_HOME=/opt/cuda\n"
    raised = "{0}: Traceback (most recent call last):\n{0}: ValueError: label 7\n"
    text = head + raised.format(0) + raised.format(1)
    assert ranks(tmp_path, text) == [None, None, 0, 0, 1, 1]
    counted = head + "1: loss 0.3\n2: loss 0.2\n"
    assert ranks(tmp_path, counted) == [None] * 4


def test_word_of_one_rank_and_of_slurm_do_not_make_nodes_of_labels(tmp_path):
    text = (
        "0: [rank0] device AMD Instinct MI250X\n"
        "5: Traceback (most recent call last):\n"
        "5: RuntimeError: miopenStatusInternalError\n"
        " 0: slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-04-09 ***\n"
    )
    assert ranks(tmp_path, text) == [0, 5, 5, 0]


def test_process_of_ray_has_the_rank_that_some_of_its_lines_tell(tmp_path):
    text = (
        "(WorkerDict pid=1412, ip=172.31.41.244) [rank 5] micro-batch 31/64\n"
        "(WorkerDict pid=1409, ip=172.31.41.244) [rank 2] micro-batch 31/64\n"
        "(WorkerDict pid=1412, ip=172.31.41.244) ValueError: label 7 of 5\n"
        "(TaskRunner pid=9) micro-batches\n"
    )
    assert ranks(tmp_path, text) == [5, 2, 5, None]


@pytest.mark.parametrize(
    "name, text, rank",
    [
        ("rank_1.log", "OSError: x\n", 1),
        ("log-rank3.txt", "OSError: x\n", 3),
        ("global_rank_12.out", "OSError: x\n", 12),
        ("lora_rank8.log", "OSError: x\n", None),
        ("rank_0.log", "[rank1]: OSError: x\n", 1),  # all ranks write there
        ("rank_0.log", "[rank1]: OSError: x\nValueError: y\n", None),
        ("rank_0.log", "srun: error: n1: task 3: Exited with exit code 1\n", None),
        ("ranking.log", "OSError: x\n", None),
    ],
)
def test_name_of_a_file_may_tell_its_rank(tmp_path, name, text, rank):
    path = tmp_path / name
    path.write_text(text)
    assert read_logs([str(path)]).lines[-1].rank == rank
