"""``workshop diagnose`` reads a log with the marks of a launcher as without them.

`make test` tries each launcher's marks on every third log, and each log with marks of
every third launcher; `make test FULL=1` tries all of them.
"""

from __future__ import annotations

import os
from functools import cache
from unittest import mock

import pytest

from tests.grader.test_diagnose import HERE, ROOT
from workshop.diagnose import report
from workshop.diagnose.causes import candidates, load
from workshop.diagnose.first import first_failed
from workshop.diagnose.logs import read_logs
from workshop.diagnose.report import diagnose, named

EACH = 1 if os.environ.get("WORKSHOP_FULL") else 3
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


@pytest.mark.parametrize("kind", PREFIXES)
def test_every_log_gets_the_same_answer_with_these_marks(kind, tmp_path):
    other = {}
    place = list(PREFIXES).index(kind)
    for path in LOGS[place % EACH :: EACH]:
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
