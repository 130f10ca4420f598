"""``workshop diagnose`` on runs that ended well, and on what a run survived.

healthy_logs holds what different programs print: warnings, retries, error rates, and
the words of the store after rank 0 has left. Reworded from what they print.
"""

from __future__ import annotations

import pytest

from tests.grader.test_diagnose import HERE, ROOT, written
from workshop.diagnose.report import diagnose

HEALTHY = HERE.parent / "healthy_logs"
LOGS = {path.stem: path.read_text(encoding="utf-8") for path in HEALTHY.glob("*.txt")}


def told(tmp_path, text):
    return diagnose(written(tmp_path, text), ROOT)


@pytest.mark.parametrize("name", LOGS)
def test_healthy_run_has_no_failure(name, tmp_path):
    lines, sure = told(tmp_path, LOGS[name])
    assert lines[0].startswith("No failure found in ") and not sure
    assert len(lines) == 1


def test_there_are_at_least_ten_healthy_logs():
    assert len(LOGS) >= 10


@pytest.mark.parametrize("name", LOGS)
def test_the_same_log_with_an_error_at_its_end_is_a_failure(name, tmp_path):
    """No noise hides it."""
    error = "Traceback (most recent call last):\nValueError: label 7 of 5\n"
    lines, sure = told(tmp_path, LOGS[name] + error)
    assert not lines[0].startswith("No failure") and not sure
    assert any("ValueError: label 7 of 5" in line for line in lines)


CAUGHT = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 9, in read
[rank1]: OSError: [Errno 116] Stale file handle
"""


def test_error_after_which_its_rank_went_on_is_named_but_no_failure(tmp_path):
    steps = "[rank1]: step 8 loss 2.1\n[rank1]: step 9 loss 2.0\n"
    lines, _ = told(tmp_path, CAUGHT + steps)
    assert lines[0].startswith("No failure found in 5 lines")
    assert "continued after" in lines[0] and "Stale file handle" in lines[0]


def test_steps_of_other_ranks_do_not_excuse_an_error(tmp_path):
    steps = "[rank0]: step 8 loss 2.1\n[rank0]: step 9 loss 2.0\n"
    lines, _ = told(tmp_path, CAUGHT + steps)
    assert lines[0].startswith("First to fail: rank 1")


@pytest.mark.parametrize(
    "line",
    [
        "Exception: the queue is closed",
        "ray.exceptions.WorkerCrashed: the worker died",
        "terminate called after throwing an instance of 'std::out_of_range'",
        "/bin/job: line 9:  4711 Aborted                 (core dumped) python train.py",
        "failed (exitcode: -6) local_rank: 0 (pid: 4711) of binary: python",
        "sbatch: error: Batch job submission failed: Invalid qos specification",
        "srun: error: Unable to create step for job 12: Requested nodes are busy",
        "slurmstepd: error: Job 7 exceeded memory limit (62 > 51), being killed",
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-26T10:00:00 DUE TO "
        "PREEMPTION ***",
        "RuntimeError: CUDA error: out of memory",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        "fatal: not a git repository",
    ],
)
def test_failure_is_seen_in_every_form(line, tmp_path):
    lines, _ = told(tmp_path, f"step 1 loss 2.0\nstep 2 loss 1.9\n{line}\n")
    assert not lines[0].startswith("No failure")
    said = " ".join(line.split())[:60]
    assert any(said in " ".join(each.split()) for each in lines), lines


def test_error_inside_of_an_error_is_the_one_that_counts(tmp_path):
    text = (
        "RuntimeError: Traceback (most recent call last):\n"
        '  File "data.py", line 3, in read\n'
        "    return rows[7]\n"
        "IndexError: list index out of range\n"
    )
    lines, _ = told(tmp_path, text)
    assert any("IndexError" in line for line in lines)
    assert not any("RuntimeError: Traceback" in line for line in lines)


def test_code_that_a_traceback_quotes_proves_nothing(tmp_path):
    text = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in step\n'
        '    raise ValueError("CUDA out of memory") if full else KeyError(name)\n'
        "KeyError: 'weights'\n"
    )
    lines, sure = told(tmp_path, text)
    assert not sure and not any("GPU" in line for line in lines)


def test_loss_that_became_nan_is_said_whatever_failed_later(tmp_path):
    text = "step 40 loss nan\n[rank1]: ValueError: label 7 of 5\n"
    lines, _ = told(tmp_path, text)
    where = lines.index("Before that, a loss had become nan:")
    assert "step 40 loss nan" in lines[where + 1]
    lines, _ = told(tmp_path, text.replace("nan", "2.1"))
    assert "Before that, a loss had become nan:" not in lines


@pytest.mark.parametrize(
    "line",
    [
        "apex isn't used: ModuleNotFoundError: No module named 'apex'",
        "tip: if you see CUDA out of memory, use a smaller batch",
        "handlers: EADDRINUSE, SIGHUP",
    ],
)
def test_words_of_an_error_in_a_log_without_one_prove_nothing(line, tmp_path):
    _, sure = told(tmp_path, f"{line}\nstep 1 loss 2.0\nstep 2 loss 1.9\ndone\n")
    assert not sure


@pytest.mark.parametrize(
    "line",
    [
        "[n1:81048] btl_qqq.c:419  Error: zzz returned -4",
        "[rank1]:[E ProcessGroupQqq.cpp:144] Rank 1 got zzz from rank 0",
    ],
)
def test_error_of_a_library_is_no_healthy_run(line, tmp_path):
    lines, _ = told(tmp_path, f"step 1 loss 2.0\n{line}\n")
    assert not lines[0].startswith("No failure")


def test_message_of_more_lines_is_no_good_end(tmp_path):
    """Its second line has the word saved."""
    error = (
        "[rank0]: torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: A "
        "different number of tensors was saved during the original forward and "
        "recomputation.\n"
        "[rank0]: Number of tensors saved during forward: 56\n"
        "[rank0]: Number of tensors saved during recomputation: 53.\n"
    )
    lines, sure = told(tmp_path, error)
    assert lines[0].startswith("First to fail: rank 0") and sure


@pytest.mark.parametrize(
    "advice",
    [
        "The sizes were saved with 8 ranks.",
        "Load it before training has finished.",
        "Call it only if init is done.",
    ],
)
def test_advice_of_an_error_is_no_good_end(advice, tmp_path):
    lines, _ = told(tmp_path, f"[rank1]: ValueError: wrong sizes\n[rank1]: {advice}\n")
    assert lines[0].startswith("First to fail: rank 1")


@pytest.mark.parametrize(
    "line",
    [
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing.",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "ray.train.base_trainer.TrainingFailedError: The Ray Train run failed.",
    ],
)
def test_launcher_alone_says_only_that_a_process_has_failed(line, tmp_path):
    lines, sure = told(tmp_path, f"step 1 loss 2.0\n{line}\n\tpid: 4711\n")
    assert lines[0].startswith("This log only says that a process has failed")
    assert line.strip()[:40] in lines[1] and not sure


RETRIED = """\
'(ReadTimeoutError("HTTPSConnectionPool(host='huggingface.co', port=443): Read timed \
out. (read timeout=10)"), '(Request ID: 7)')' thrown while requesting HEAD https://x
Retrying in 1s [Retry 1/5].
"""


def test_failed_download_that_is_tried_again_is_no_failure(tmp_path):
    lines, _ = told(tmp_path, RETRIED + "{'loss': 0.41, 'epoch': 0.5}\n")
    assert lines[0].startswith("No failure found") and len(lines) == 1


def test_try_of_a_scheduler_hides_no_failure_before_it(tmp_path):
    text = (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\n"
        "srun: Job step creation temporarily disabled, retrying (Nodes are busy)\n"
    )
    lines, sure = told(tmp_path, text)
    assert not lines[0].startswith("No failure found") and sure


def test_last_try_counts(tmp_path):
    end = "Giving up.\nOSError: We couldn't connect to 'https://huggingface.co'\n"
    lines, sure = told(tmp_path, RETRIED + end)
    assert "Cause: The node has no internet: a download failed" in lines and sure


SURVIVED_BY = [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    "Decreasing batch size to: 16.\n",
    "wandb: ERROR Error while calling the API: internal error (<Response [500]>)\n",
    "n1:1:9 [0] init.cc:1 NCCL WARN Could not enable P2P between dev 0 and dev 1\n",
    "n1:1:9 [0] NCCL WARN NET/IB : Unable to open device mlx5_9\n",
]
ENDS_OF_RUNS = [
    "{'train_runtime': 10.0, 'train_loss': 0.45, 'epoch': 2.0}\n",
    "`Trainer.fit` stopped: `max_epochs=5` reached.\n",
    "Training done.\n",
    "[after training is done] datetime: 2026-11-29 10:00:00\n",
]


@pytest.mark.parametrize("end", ENDS_OF_RUNS)
@pytest.mark.parametrize("error", SURVIVED_BY)
def test_run_that_comes_to_its_end_has_survived_what_it_logged(error, end, tmp_path):
    steps = "{'loss': 0.5, 'epoch': 1.0}\n{'loss': 0.4, 'epoch': 2.0}\n"
    lines, _ = told(tmp_path, error + steps + end)
    assert lines[0].startswith("No failure found")


@pytest.mark.parametrize(
    "later",
    [
        "Finished dumping debug info\n",
        "Saved the trace to trace.json\n",
        "Training not done.\n",
        "Training done.\nE api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 9)\n",
    ],
)
@pytest.mark.parametrize("error", SURVIVED_BY[1:])
def test_other_good_words_after_an_error_excuse_nothing(error, later, tmp_path):
    lines, _ = told(tmp_path, error + later)
    assert not lines[0].startswith("No failure found")


HEADS = [
    "deepspeed_head",
    "no_checkpoint",
    "other_network",
    "batch_size_finder",
    "wandb_retry",
    "attention_fallback",
]
RAISED = """\
[rank3]: Traceback (most recent call last):
[rank3]:   File "train.py", line 9, in load
[rank3]: AssertionError: dp_degree is inconsistent before and after checkpoint
"""


@pytest.mark.parametrize("name", HEADS)
def test_noise_before_an_exception_changes_no_answer(name, tmp_path):
    def without_places(text):
        return [row.partition("rank 3:")[2] or row for row in told(tmp_path, text)[0]]

    assert without_places(LOGS[name] + RAISED) == without_places(RAISED)


def test_what_nccl_warned_of_after_its_start_counts(tmp_path):
    text = LOGS["other_network"].splitlines(keepends=True)
    warns = "f560:124:891 [1] NCCL WARN NET/OFI Couldn't open AV. RC: -22\n"
    lines, _ = told(tmp_path, "".join([*text[:-1], warns]))
    assert any("libfabric" in line for line in lines)


def test_batch_size_that_failed_last_is_the_error(tmp_path):
    text = "".join(LOGS["batch_size_finder"].splitlines(keepends=True)[:2])
    lines, _ = told(tmp_path, text)
    assert lines[0].startswith("First to fail: rank 0")


@pytest.mark.parametrize(
    "later",
    [
        "{'loss': 2.58, 'grad_norm': nan, 'epoch': 0.02}\n",
        "{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.02}\n" * 3,
        "{'loss': 2.58, 'grad_norm': 1.0, 'epoch': 0.02}\n",  # once proves nothing
    ],
)
def test_gradient_that_stays_nan_is_told(later, tmp_path):
    first = LOGS["first_gradient"].splitlines(keepends=True)[0]
    lines, _ = told(tmp_path, first + later)
    assert any("nan or inf" in line for line in lines)


def test_rank_with_nan_beside_finite_ones_does_not_recover(tmp_path):
    """Which rank printed a line, the lines don't tell."""
    steps = [f"step {n} loss {loss}\n" for n in (1, 2) for loss in ("nan", 2.1, 2.2)]
    lines, _ = told(tmp_path, "".join(steps))
    assert any("nan or inf" in line for line in lines)


def test_loss_scale_that_is_halved_to_the_end_is_told(tmp_path):
    scales = [f"step {n} loss 2.1 loss scale {2.0 ** (30 - n)}\n" for n in range(12)]
    lines, _ = told(tmp_path, "".join(scales))
    assert any("nan or inf" in line for line in lines)
    later = "step 12 loss 2.0\nstep 13 loss 1.9\n"
    assert told(tmp_path, "".join(scales) + later)[0][0].startswith("No failure")


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: checkpoint not found, cannot start from step 0",
        "ERROR: no checkpoint in /x; aborting, remove --resume to train from scratch",
        "ValueError: no checkpoint found, start from scratch with --resume=none",
    ],
)
def test_missing_checkpoint_that_ends_the_run_is_a_failure(line, tmp_path):
    lines, _ = told(tmp_path, f"loading\n{line}\n")
    assert not lines[0].startswith("No failure")


def test_network_that_nccl_did_without_is_no_error_of_a_rank(tmp_path):
    head = LOGS["other_network"].splitlines(keepends=True)[:3]
    lines, _ = told(tmp_path, "".join(head) + RAISED)
    assert lines[0].startswith("First to fail: rank 3")
    assert not any("libfabric" in line for line in lines)
