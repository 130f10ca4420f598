"""``workshop diagnose`` on kinds of logs that strangers brought, and that it misread.

Shortened and reworded from public threads, which causes.toml names as sources.
"""

from __future__ import annotations

import pytest

from tests.grader.test_diagnose import ROOT, written
from workshop.diagnose.causes import candidates, load
from workshop.diagnose.first import first_failed
from workshop.diagnose.report import diagnose, named

MIXED = (
    "got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor"
)
RAISED = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "{path}", line 219, in {function}
[rank0]:     run()
[rank0]: RuntimeError: {message}
"""
IN_CLIP = {"path": "/lib/torch/nn/utils/clip_grad.py", "function": "_get_total_norm"}
IN_STEP = {"path": "/lib/torch/optim/adamw.py", "function": "_multi_tensor_adamw"}
IN_FORWARD = {"path": "/w/model.py", "function": "forward"}


def told(tmp_path, text):
    return diagnose(written(tmp_path, text), ROOT)[0]


def read(tmp_path, text):
    """(the ranks that failed first, the named cause, the first candidate)."""
    log = written(tmp_path, text)
    first = first_failed(log)
    found = candidates(load(ROOT), log, first)
    sure = named(found)
    likeliest = found[0].cause.name if found else None
    return first and first.ranks, sure and sure.cause.name, likeliest


@pytest.mark.parametrize(
    "message",
    [
        f"aten._foreach_norm.Scalar: {MIXED}",
        f"aten.stack.default: {MIXED}",
        "All operands in aten.stack.default must have the same mesh",
        f"aten._foreach_mul_.Tensor: {MIXED}",
    ],
)
def test_mix_inside_of_clipping_is_not_the_optimizers(tmp_path, message):
    text = RAISED.format(message=message, **IN_CLIP)
    assert read(tmp_path, text)[1] == "clip_mix"


@pytest.mark.parametrize("operation", ["_foreach_norm.Scalar", "_foreach_mul_.Scalar"])
def test_mix_inside_of_the_optimizer_is_its_own(tmp_path, operation):
    """Adafactor takes norms, too."""
    text = RAISED.format(message=f"aten.{operation}: {MIXED}", **IN_STEP)
    assert read(tmp_path, text)[1] == "foreach_mix"


@pytest.mark.parametrize("operation", ["_foreach_norm.Scalar", "_foreach_mul_.Scalar"])
def test_mix_elsewhere_names_neither_clipping_nor_optimizer(tmp_path, operation):
    text = RAISED.format(message=f"aten.{operation}: {MIXED}", **IN_FORWARD)
    assert read(tmp_path, text)[1] not in ("clip_mix", "foreach_mix")


RESTARTED = """\
step 480 loss 2.311
[rank1]: Traceback (most recent call last):
[rank1]: {error}
E0610 11:20:33.2 7001 torch/distributed/elastic/multiprocessing/api.py:869] failed \
(exitcode: 1) local_rank: 1 (pid: 7092) of binary: /opt/conda/bin/python
I0610 11:20:33.3 7001 torch/distributed/elastic/agent/server/api.py:889] [default] \
Worker group FAILED. 3/3 attempts left; will restart worker group
resuming from snapshot.pt at step 400
step 1000 loss 1.998
"""
ENDED = """\
I0610 12:01:00.3 7001 torch/distributed/elastic/agent/server/api.py:879] [default] \
worker group successfully finished. Waiting 300 seconds for other agents to finish.
"""
ERRORS = [
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "ValueError: bad sample 17",
]


@pytest.mark.parametrize("error", ERRORS)
def test_run_that_torchrun_restarted_and_that_finished_did_not_fail(tmp_path, error):
    (line,) = told(tmp_path, RESTARTED.format(error=error) + ENDED)
    assert line.startswith("No failure")
    assert "rank 1 failed once" in line and error[:20] in line
    assert "torchrun restarted it, and the run finished" in line


@pytest.mark.parametrize("error", ERRORS)
def test_run_that_was_restarted_and_did_not_finish_is_a_failure(tmp_path, error):
    lines = told(tmp_path, RESTARTED.format(error=error))
    assert not lines[0].startswith("No failure")
    again = f"[rank2]: Traceback (most recent call last):\n[rank2]: {error}\n"
    lines = told(tmp_path, RESTARTED.format(error=error) + again + ENDED)
    assert not lines[0].startswith("No failure")


@pytest.mark.parametrize(
    "line",
    [
        "E0000 00:00:1734685272.131212 1701 cuda_dnn.cc:8310] Unable to register cuDNN "
        "factory: Attempting to register factory for plugin cuDNN when one has already "
        "been registered",
        "E0000 00:00:1734685272.137022 1701 cuda_blas.cc:1418] Unable to register "
        "cuBLAS factory: Attempting to register factory for plugin cuBLAS",
        "[2026-02-11 01:02:01] ERROR: could not upload logs to tensorboard.dev, will "
        "continue",
        "could not open the cache file, continuing without it",
    ],
)
def test_words_of_healthy_libraries_are_no_failure(tmp_path, line):
    text = f"step 1 loss 2.0\n{line}\nstep 2 loss 1.9\n"
    assert told(tmp_path, text)[0].startswith("No failure")


WAITED = (
    "{rank}: [E725 22:01:00.397 ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog "
    "caught collective operation timeout: WorkNCCL(SeqNum=35512, OpType=ALLREDUCE, "
    "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 milliseconds before "
    "timing out.\n"
    "{rank}: [E725 22:01:00.399 ProcessGroupNCCL.cpp:1537] [PG 0 Rank {rank}] Timeout "
    "at NCCL work: 35512, last enqueued NCCL work: 35512.\n"
)
OWN = """\
2: Traceback (most recent call last):
2:   File "/w/train.py", line 300, in main
2:     for step, batch in pbar:
2: {error}
"""
SUMMARY = """\
Root Cause (first observed failure):
[0]:
  rank      : 0 (local_rank: 0)
  exitcode  : -6 (pid: 501)
  traceback : Signal 6 (SIGABRT) received by PID 501
"""
EXITED = "srun: error: n01: tasks 0-3: Exited with exit code 1\n"
LABELS = {
    "srun --label": "{rank}: ",
    "torch": "[rank{rank}]: ",
    "torchrun --tee": "[default{rank}]:",
    "mpirun": "[1,{rank}]<stderr>:",
    "pdsh": "n01: [rank{rank}]: ",
    "Kubernetes": "2026-11-26T10:00:00.1Z [rank{rank}]: ",
}


def relabeled(text, label):
    """The same lines with another mark than that of srun --label."""
    rows = [row.partition(": ") for row in text.splitlines()]
    return "".join(f"{label.format(rank=rank)}{rest}\n" for rank, _, rest in rows)


@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("end", ["", EXITED], ids=["", "exited"])
@pytest.mark.parametrize(
    "error",
    [
        "av.error.InvalidDataError: [Errno 1094995529] Invalid data found when "
        "processing input: '/data/clips/0b1c_33.mp4'",
        "ValueError: bad sample 17",
    ],
)
def test_own_exception_is_the_first_whatever_the_marks(tmp_path, error, end, label):
    waited = "".join(WAITED.format(rank=rank) for rank in (0, 1, 3))
    text = relabeled(OWN.format(error=error) + waited, label)
    lines = told(tmp_path, text + end)
    assert lines[0].startswith("First to fail: rank 2")
    assert lines[1] == "    Failed because of it, or later: ranks 0, 1 and 3"
    assert lines[2] == "Rank 2 raised its own exception, and the others waited for it:"
    assert error[:20] in lines[3]
    assert not any("A collective timed out" in line for line in lines)


def test_abort_of_those_that_waited_is_no_candidate(tmp_path):
    waited = "".join(WAITED.format(rank=rank) for rank in (0, 1, 3))
    text = relabeled(OWN.format(error="ValueError: 17") + waited, LABELS["torch"])
    lines = told(tmp_path, text + SUMMARY)
    assert lines[0].startswith("First to fail: rank 2")
    assert not any("SIGABRT" in line for line in lines)


def test_report_of_srun_is_no_error_of_each_task(tmp_path):
    text = (
        "n1:3063028:3066152 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of "
        f"memory'\nncclInternalError: Internal check failed.\n{EXITED}"
    )
    lines = told(tmp_path, text)
    assert "the same error" not in lines[0]
    assert "GPU 3 of n1" in lines[0]


def test_lines_of_srun_have_no_label_and_hide_none(tmp_path):
    text = "1: Traceback (most recent call last):\n1: ValueError: 3\n0: step 1\n"
    log = written(tmp_path, text + EXITED * 2)
    assert [line.rank for line in log.lines] == [1, 1, 0, None, None]


def test_labels_of_nodes_stay_labels_of_nodes(tmp_path):
    where = {0: 0, 1: 0, 2: 1, 3: 1}
    text = "".join(
        WAITED.format(rank=rank).replace(f"{rank}: [E", f"{node}: [E")
        for rank, node in where.items()
    )
    log = written(tmp_path, text)
    assert [line.rank for line in log.lines[::2]] == list(where)


TORCHRUNS = """\
Failures:
[1]:
  rank      : 13 (local_rank: 1)
  exitcode  : -6 (pid: 22902)
Root Cause (first observed failure):
[0]:
  rank      : 12 (local_rank: 0)
  exitcode  : -6 (pid: 22901)
"""
ECC = """\
[default0]:step 11 loss 1.2341
[default1]:step 11 loss 1.2214
[default0]:[rank12]:[E817 17:40:34.2 ProcessGroupNCCL.cpp:1515] [PG 0 (default_pg) \
Rank 12] Process group watchdog thread terminated with exception: {error}
[default1]:[rank13]:[E817 17:40:36.9 ProcessGroupNCCL.cpp:1515] [PG 0 (default_pg) \
Rank 13] Process group watchdog thread terminated with exception: NCCL error: remote \
process exited or there was a network error, NCCL version 2.20.5
[default1]:ncclRemoteError: A call failed possibly due to a network error.
"""
ON_A_GPU = "CUDA error: uncorrectable ECC error encountered"
REMOTE = "NCCL error: remote process exited or there was a network error"


def test_rank_whose_gpu_failed_is_the_first_and_no_partner_that_lost(tmp_path):
    lines = told(tmp_path, ECC.format(error=ON_A_GPU) + TORCHRUNS)
    assert lines[0].startswith("First to fail: rank 12 (torchrun saw it fail first")
    assert lines[1] == "    Failed because of it, or later: rank 13"


@pytest.mark.parametrize("end", ["", TORCHRUNS], ids=["", "summary"])
def test_who_only_lost_its_partner_is_never_the_first(tmp_path, end):
    lines = told(tmp_path, ECC.format(error=REMOTE) + end)
    assert not lines[0].startswith("First to fail: rank")


@pytest.mark.parametrize("end", [ECC.format(error=ON_A_GPU), TORCHRUNS])
def test_local_ranks_become_ranks_where_the_log_has_both(tmp_path, end):
    log = written(tmp_path, "[default1]:step 10 loss 1.3\n" + end)
    assert log.lines[0].rank == 13


def test_local_ranks_of_two_nodes_are_no_ranks(tmp_path):
    text = "[default1]:step 1\n[default1]:[rank1]: a\n[default1]:[rank9]: b\n"
    assert [line.rank for line in written(tmp_path, text).lines] == [None, 1, 9]
    text = "torchrun --nnodes=2 --node-rank=1 train.py\n[default1]:step 1\n"
    assert written(tmp_path, text).lines[1].rank is None


BAR = (
    "Running tokenizer on dataset: {part}%|###  | {at} [{took}<4:48:40, 155.33 ex/s]\n"
)
LATE = "".join(
    f"[rank{rank}]:[E ProcessGroupNCCL.cpp:475] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, "
    "NumelOut=1, Timeout(ms)=1800000) ran for 1800328 milliseconds.\n"
    for rank in (1, 2, 3)
)
ABORTED = "".join(
    f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : -6 (pid: 512{rank})\n"
    for rank in (2, 3)
) + SUMMARY.replace("0 (local_rank: 0)", "1 (local_rank: 1)")


@pytest.mark.parametrize("end", ["", ABORTED], ids=["", "summary"])
def test_rank_that_prepares_the_data_is_suspected_first(tmp_path, end):
    bar = BAR.format(part=0, at="0/2969526", took="00:00")
    bar += BAR.format(part=9, at="280000/2969526", took="29:55")
    lines = told(tmp_path, bar + LATE + end)
    assert lines[0].startswith("Suspect: rank 0")
    assert read(tmp_path, bar + LATE + end)[1:] == (None, "slow_preparation")
    assert "29:55" in "".join(lines)


@pytest.mark.parametrize(
    "bar",
    [
        BAR.format(part=9, at="280000/2969526", took="00:05"),
        BAR.format(part=100, at="2969526/2969526", took="29:55"),
        BAR.format(part=9, at="9/90", took="29:55").replace("Running tokenizer", "It"),
    ],
    ids=["short", "complete", "training"],
)
def test_bar_of_something_else_suspects_no_preparation(tmp_path, bar):
    bar = bar.replace("on dataset", "on")
    assert read(tmp_path, bar + LATE)[2] != "slow_preparation"


CHAIN = """\
Traceback (most recent call last):
  File "/w/trainer.py", line 643, in train_step
    self._check_grad_norms(grad_norm)
{first}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/w/nan_detector.py", line 30, in __exit__
    logger.info("gradients")
RuntimeError: CUDA error: out of memory
"""
INCONSISTENT = """\
FloatingPointError: Fatal error: gradients are inconsistent between workers. Try \
--ddp-backend=no_c10d.
----------------------------------------
grad_norm across the workers:
rank   0 = {0}
rank   1 = {1}
"""


def test_gradients_that_are_nan_on_all_ranks_are_not_inconsistent(tmp_path):
    text = CHAIN.format(first=INCONSISTENT.format("nan", "nan"))
    assert read(tmp_path, text)[1] == "loss_is_nan"
    lines = told(tmp_path, text)
    assert not any("loss became nan" in line for line in lines)
    text = INCONSISTENT.format("0.31", "0.32")
    assert read(tmp_path, text)[1:] == (None, "gradients_differ")


@pytest.mark.parametrize(
    "first", [INCONSISTENT.format("0.31", "0.32"), "ValueError: bad sample 17"]
)
def test_error_while_another_one_is_handled_is_not_the_cause(tmp_path, first):
    assert read(tmp_path, CHAIN.format(first=first))[1] is None


def test_wrapper_that_tells_the_first_error_again_counts(tmp_path):
    unreachable = "[Errno 101] Network is unreachable"
    text = CHAIN.format(first=f"OSError: {unreachable}")
    wrapper = (
        "urllib3.exceptions.MaxRetryError: HTTPSConnectionPool(host='huggingface.co', "
        "port=443): Max retries exceeded with url: /m (Caused by NewConnectionError("
        f"'Failed to establish a new connection: {unreachable}'))"
    )
    text = text.replace("RuntimeError: CUDA error: out of memory", wrapper)
    assert read(tmp_path, text)[1] == "no_internet"


BROKEN = """\
[ INFO : 2023-06-21 11:02:55,910 ] - | 31| 1500|   0.0203| 31.92|  1.2207|
WARNING:torch.distributed.elastic.rendezvous.dynamic_rendezvous:The node 'n4_3882_0' \
has failed to shutdown the rendezvous '9987' due to an error of type \
RendezvousConnectionError.
Traceback (most recent call last):
  File "/lib/rendezvous/c10d_rendezvous_backend.py", line 113, in _call_store
    return getattr(self._store, store_op)(*args, **kwargs)
RuntimeError: Broken pipe

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/lib/rendezvous/c10d_rendezvous_backend.py", line 115, in _call_store
    raise RendezvousConnectionError(
torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to \
the C10d store has failed. See inner exception for details.
"""


def test_store_that_was_connected_had_been_reached(tmp_path):
    lines = told(tmp_path, BROKEN)
    assert not any("couldn't reach" in line for line in lines)
    assert read(tmp_path, BROKEN)[2] == "store_left"
    refused = BROKEN.replace("Broken pipe", "Connection refused")
    assert read(tmp_path, refused)[2] != "store_left"


SIZE_0 = (
    "RuntimeError: Error(s) in loading state_dict for MT5ForConditionalGeneration:\n"
    "        size mismatch for shared.weight: copying a param with shape torch.Size("
    "[250112, 512]) from checkpoint, the shape in current model is torch.Size([{0}]).\n"
)
DEAD_NODE = """\
[2024-03-06 02:41:19 E 1311 1379] (raylet) raylet_client.cc:60: IOError: Broken pipe
ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.
The actor is dead because its node has died. Node Id: 677df2a9020c5db45e755b0078c469e2
"""
FORBIDDEN = (
    "wandb.errors.{0}CommError: failed to upsert bucket: returned error 403 Forbidden: "
    '{{"errors":[{{"message":"permission denied","path":["upsertBucket"]}}]}}'
)
NVML = "nvmlDeviceGetHandleByPciBusId() failed: Not Found"
NVML_LOG = f"""\
n1:6897:7102 [2] misc/nvmlwrap.cc:187 NCCL WARN {NVML}
[rank1]: torch.distributed.DistBackendError: NCCL error in: ../NCCLUtils.hpp:317, \
unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5
[rank1]: ncclSystemError: System call (e.g. socket, malloc) or external library call \
failed or device error.
[rank1]: Last error:
[rank1]: {NVML}
"""
ASSERTED = (
    "/aten/Indexing.cu:1284: indexSelectLargeIndex: block: [37,0,0], thread: [92,0,0] "
    "Assertion `srcIndex < srcSelectDimSize` failed.\n"
    "[rank0]: RuntimeError: CUDA error: device-side assert triggered\n"
)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (SIZE_0.format("0"), "loaded_into_parts"),
        (DEAD_NODE, "ray_node_died"),
        (FORBIDDEN.format("errors."), "wandb_permission"),
        (FORBIDDEN.format(""), "wandb_permission"),
        (NVML_LOG, "gpu_of_another_container"),
        ("config loaded.\n  inp: shape=(3, 48, 48)\nKilled\n", "killed"),
        (ASSERTED, "token_out_of_range"),
    ],
)
def test_cause_that_the_message_names(tmp_path, text, cause):
    assert read(tmp_path, text)[1] == cause


def test_other_size_than_0_is_of_another_model(tmp_path):
    assert read(tmp_path, SIZE_0.format("250100, 512"))[2] == "other_model"


@pytest.mark.parametrize("text", ["NotKilled\n", "Killed 3 workers\n"])
def test_word_that_looks_like_killed_is_no_signal(tmp_path, text):
    assert read(tmp_path, "Traceback (most\n" + text)[1] is None


def test_no_more_logs_are_asked_for_where_a_rank_says_what_it_raised(tmp_path):
    text = "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: 17\n"
    lines = told(tmp_path, text)
    assert "Rank 0 raised its own exception:" in lines
    assert not any("To settle it" in line for line in lines)


def test_warning_of_nccl_that_is_quoted_is_not_asked_for(tmp_path):
    text = NVML_LOG.replace(NVML, "Something that nobody knows")
    lines = told(tmp_path, text)
    assert any("Something that nobody knows" in line for line in lines)
    assert not any("Ask: Which rank wrote the first NCCL WARN" in x for x in lines)


def test_error_of_an_actor_is_quoted_and_no_bare_traceback(tmp_path):
    text = (
        "Traceback (most recent call last):\n"
        '  File "/w/base.py", line 46, in func\n'
        "    output = ray.get(output)\n"
        "ray.exceptions.ActorDiedError: The actor died unexpectedly.\n"
        "        pid: 8110\n"
    )
    lines = told(tmp_path, text)
    assert any("ActorDiedError: The actor died" in line for line in lines)
    assert not any("Traceback (most recent" in line for line in lines)


def test_summary_alone_says_how_to_keep_the_ranks_own_errors(tmp_path):
    error = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    lines = told(tmp_path, error + TORCHRUNS.replace("-6", "1 "))
    assert any("--tee 3" in line and "@record" in line for line in lines)


DUPLICATE = (
    "[1,{0}]<stdout>:n1:2988{0}:30398 [0] init.cc:497 NCCL WARN Duplicate GPU detected "
    ": rank {0} and rank 1 both on CUDA device 1000\n"
)


def test_error_is_first_in_the_log_only_if_it_is(tmp_path):
    text = (
        DUPLICATE.format(3)
        + DUPLICATE.format(0)
        + "[1,0]<stderr>:horovod.common.exceptions.HorovodInternalError: "
        "ncclCommInitRank failed: invalid usage\n  Process name: [[62345,1],3]\n"
    )
    lines = told(tmp_path, text)
    assert not lines[0].startswith("First to fail: rank 0")
    assert not any("Failed because of it" in line for line in lines)


def test_line_of_xid_is_no_condition_of_a_report():
    cause = next(each for each in load(ROOT) if each.name == "gpu_hardware")
    assert "with the Xid line." not in cause.cure


# An exception without a rank, beside the time-outs of those that waited

WITHOUT_A_RANK = """\
Traceback (most recent call last):
  File "/home/u/train.py", line 82, in <module>
    main()
  File "/home/u/data.py", line 31, in __getitem__
    return self.items[i]["image"]
KeyError: 'image'
"""
OUT_OF_TIME = (
    "[E ProcessGroupNCCL.cpp:474] [Rank {}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=98, Timeout(ms)=600000) "
    "ran for 600020 milliseconds before timing out.\n"
)


def waited(*ranks):
    return "".join(map(OUT_OF_TIME.format, ranks))


@pytest.mark.parametrize("mark", ["", "node-07: ", "(RayTrainWorker pid=4711) "])
@pytest.mark.parametrize("is_late", [False, True])
def test_exception_without_a_rank_is_shown_and_no_time_out(tmp_path, mark, is_late):
    parts = [WITHOUT_A_RANK, waited(0, 1, 2)]
    if is_late:
        parts.reverse()
    log = "".join(f"{mark}{row}\n" for row in "".join(parts).splitlines())
    text = "\n".join(told(tmp_path, log))
    assert "KeyError: 'image'" in text and "no error in the log" not in text
    assert "timed out" not in text and "all waited" not in text


def test_only_rank_that_did_not_wait_may_have_raised_it(tmp_path):
    lines = told(tmp_path, WITHOUT_A_RANK + waited(1, 2, 3))
    assert lines[0].startswith("Suspect: rank 0 (the others waited, and an exception")


def test_launchers_own_exception_is_no_lead(tmp_path):
    """It says only that a process has failed."""
    launcher = (
        "subprocess.CalledProcessError: Command '['python', 'train.py']' returned "
        "non-zero exit status 1.\n"
    )
    text = f"{waited(0, 1, 2)}Traceback (most recent call last):\n{launcher}"
    assert "name no rank" not in "\n".join(told(tmp_path, text))


ROOT_CAUSE = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
Root Cause (first observed failure):
[0]:
  time      : 2024-05-26_16:36:23
  host      : n1
  rank      : 2 (local_rank: 2)
  exitcode  : 1 (pid: 303)
  error_file: /tmp/attempt_0/2/error.json
  traceback : Traceback (most recent call last):
    File "/home/u/data.py", line 31, in __getitem__
      return self.items[i]["image"]
  KeyError: 'image'

============================================================
"""


def test_traceback_that_torchrun_quotes_is_that_ranks_own(tmp_path):
    lines = told(tmp_path, waited(0, 1, 3) + ROOT_CAUSE)
    assert lines[0].startswith("First to fail: rank 2 ")
    assert "Rank 2 raised its own exception" in "\n".join(lines)
    assert "    KeyError: 'image'" in lines


@pytest.mark.parametrize(("status", "cause"), [(1, None), (127, None), (255, "maybe")])
def test_only_255_is_the_status_of_ssh_itself(tmp_path, status, cause):
    line = f"pdsh@gpu003: gpu004: ssh exited with exit code {status}\n"
    _, sure, likeliest = read(tmp_path, f"gpu004: step 1 loss 2.0\n{line}")
    assert sure != "ssh_refused"
    assert (likeliest == "ssh_refused") == (cause == "maybe")


REQUEUE = "slurmstepd: error: *** JOB 12 ON n3 CANCELLED AT 2026-07-09 DUE TO {} ***\n"
AGAIN = "Restored all states from last.ckpt\nEpoch 42: 100%|####| 800/800\n"
REACHED = "`Trainer.fit` stopped: `max_epochs=43` reached.\n"


@pytest.mark.parametrize("why", ["JOB REQUEUE", "PREEMPTION"])
def test_run_that_slurm_started_again_and_that_finished_did_not_fail(tmp_path, why):
    cancelled = REQUEUE.format(why)
    lines = told(tmp_path, cancelled + AGAIN + REACHED)
    assert lines[0].startswith("No failure")
    assert "put back into the queue once, and the run finished" in lines[0]
    assert read(tmp_path, cancelled)[1] == "preempted"
    assert read(tmp_path, cancelled + AGAIN)[1] == "preempted"


@pytest.mark.parametrize(
    "line",
    [
        "[titan] 2025-03-06 - root - WARNING - Error running lspci: [Errno 2] No such "
        "file or directory: 'lspci', fallback to use device_name",
        "ERROR:root:Failed to decode sample 1123, skipping: cannot identify image",
        "ERROR 2021-07-15T20:59 wandb: Network error resolved after 0:01:10, resuming",
        "(raylet) file_system_monitor.cc:116: /tmp/ray/a is over 95% full, available "
        "space: 2.03779 GB; capacity: 69.9336 GB.",
    ],
)
def test_words_of_what_a_run_survives_are_no_failure(tmp_path, line):
    [said] = told(tmp_path, f"step 1 loss 2.0\n{line}\nstep 2 loss 1.9\n")
    assert said.startswith("No failure")
