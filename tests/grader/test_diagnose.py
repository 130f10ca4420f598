"""``workshop diagnose``: the first rank and the cause, or an honest "not sure".

The logs of ``foreign_logs`` quote public threads. The gallery's own logs:
test_diagnose_gallery.py.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.grader.small_house import workshop
from workshop.diagnose.causes import candidates, load
from workshop.diagnose.first import first_failed
from workshop.diagnose.logs import must_have_text, read_logs
from workshop.diagnose.report import diagnose, named
from workshop.errors import UserError
from workshop.lesson_pages import page_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent / "foreign_logs"
LOGS = tomllib.loads((HERE / "index.toml").read_text(encoding="utf-8"))["log"]
LOST = "RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:10141"


def read(name):
    log = read_logs([str(HERE / name)])
    first = first_failed(log)
    return first, candidates(load(ROOT), log, first)


def written(tmp_path, text):
    path = tmp_path / "run.log"
    path.write_text(text)
    return read_logs([str(path)])


@pytest.mark.parametrize("entry", LOGS, ids=lambda entry: entry["file"][:-4])
def test_foreign_log_gets_its_cause_and_its_first_rank(entry):
    first, found = read(entry["file"])
    cause = named(found)
    assert (cause.cause.name if cause else "") == entry["cause"]
    if not cause:
        listed = [each.cause.name for each in found[:2]]
        assert listed == entry.get("among", [])
    assert list(first.ranks if first else ()) == entry["first"]


def test_every_foreign_log_has_a_source_and_most_are_named():
    assert {entry["file"] for entry in LOGS} == {p.name for p in HERE.glob("*.txt")}
    public = [entry for entry in LOGS if "https://" in entry["messages_of"]]
    assert len(public) >= 20
    assert sum(bool(entry["cause"]) for entry in public) >= 15


# -- forms of logs ------------------------------------------------------------------
def log_folder(folder, said, attempt=0):
    """What ``torchrun --log-dir`` leaves: rank -> (second, message); None: no file."""
    for rank, error in said.items():
        place = folder / f"run_1/attempt_{attempt}/{rank}"
        place.mkdir(parents=True)
        (place / "stderr.log").write_text("")
        if error:
            extra = {"py_callstack": "", "timestamp": str(error[0])}
            message = {"message": {"message": error[1], "extraInfo": extra}}
            (place / "error.json").write_text(json.dumps(message))


def test_error_files_of_torchrun_tell_the_earliest_own_error(tmp_path):
    log_folder(
        tmp_path,
        {
            0: (6, LOST),
            1: (9, "KeyError: 1"),
            2: (8, "OSError: [Errno 28] No space left on device"),
        },
    )
    log = read_logs([str(tmp_path)])
    assert first_failed(log).ranks == (2,)
    told, sure = diagnose(log, ROOT)
    assert sure and "disk is full" in " ".join(told)


def test_silent_rank_of_a_log_folder_is_the_suspect(tmp_path):
    log_folder(tmp_path, {0: (6, LOST), 1: None, 2: (6, LOST)})
    text = "".join(f"[rank{rank}]: {LOST}\n" for rank in (0, 2))
    (tmp_path / "run_1/attempt_0/0/stderr.log").write_text(text)
    assert first_failed(read_logs([str(tmp_path)])).ranks == (1,)


def test_newest_attempt_counts_and_the_second_nodes_ranks_follow_the_firsts(tmp_path):
    log_folder(tmp_path / "n1", {0: (1, "KeyError: 1"), 1: None}, attempt=0)
    log_folder(tmp_path / "n1", {0: (7, LOST), 1: (7, LOST)}, attempt=10)
    log_folder(tmp_path / "n2", {0: (7, LOST), 1: (7, "ValueError: 63 pixels")})
    nodes = [str(tmp_path / "n1"), str(tmp_path / "n2")]
    assert first_failed(read_logs(nodes)).ranks == (3,)


def test_rank_that_torchrun_ended_by_sigterm_is_not_the_first(tmp_path):
    blocks = "".join(
        f"[{n}]:\n  time : x\n  rank      : {n} (local_rank: {n})\n"
        f"  exitcode  : {code} (pid: 1{n})\n"
        for n, code in ((0, -15), (1, -9))
    )
    log = written(tmp_path, f"Root Cause (first observed failure):\n{blocks}")
    assert first_failed(log).ranks == (1,)


def test_several_ranks_with_the_same_error_are_all_named(tmp_path):
    rows = [
        f"[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory" for rank in "012"
    ]
    first = first_failed(written(tmp_path, "\n".join(rows)))
    assert first.ranks == (0, 1, 2) and "same error" in first.reason


def test_only_rank_that_speaks_has_waited_and_is_not_called_all(tmp_path):
    first = first_failed(written(tmp_path, f"[rank0]: {LOST}"))
    assert first.ranks == () and first.reason.startswith("rank 0 waited, or lost")


def test_monitored_barrier_names_the_rank_it_missed(tmp_path):
    row = "[rank0]: RuntimeError: Rank 2 failed to pass monitoredBarrier in 1000 ms"
    assert first_failed(written(tmp_path, row)).ranks == (2,)


def test_two_certain_causes_on_different_ranks_are_not_decided(tmp_path):
    rows = (
        "[rank0]: OSError: [Errno 28] No space left on device\n"
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory\n"
    )
    log = written(tmp_path, rows)
    told, sure = diagnose(log, ROOT)
    assert sure and "disk is full" in " ".join(told)  # the first rank's own error
    shuffled = written(tmp_path, re.sub(r"\[rank\d\]: ", "", rows))
    told, sure = diagnose(shuffled, ROOT)
    assert not sure and sum(line.startswith("  - ") for line in told) == 2


def test_no_more_than_two_candidates_are_listed():
    told, sure = diagnose(read_logs([str(HERE / "gloo_waits.txt")]), ROOT)
    assert not sure
    assert sum(line.startswith("  - ") for line in told) == 2


def test_causes_have_pages_that_exist_and_explain_causes_that_exist():
    causes = load(ROOT)
    names = {cause.name for cause in causes}
    assert len(names) == len(causes)
    for cause in causes:
        page = re.split("[,#]", cause.read)[0].replace(".html", ".rst")
        assert (ROOT / page).is_file(), cause.read
        assert set(cause.explains) <= names, cause.name
        assert 1 <= cause.weight <= 3 and cause.title and cause.cure, cause.name


# What a page says about a cause that the gallery doesn't show
ON_PAGES = {
    "disk_full": "full disk",
    "failed_write": "written in place",
    "other_model": "strict=False",
    "marked_ready_twice": "Expected to mark a variable ready only once",
    "no_process_group": "Default process group has not been initialized",
    "name_not_resolved": "resolve",
    "some_names_not_resolved": "resolve",
    "unreachable_peer": "GLOO_SOCKET_IFNAME",
    "refused_peer": "Connection refused",
    "infiniband": "NCCL_IB_HCA",
    "collective_mismatch": "TORCH_DISTRIBUTED_DEBUG",
    "collective_timeout": "time-out",
    "slow_preparation": "unless you pass a time-out",
    "store_left": "opens the store",
    "time_limit": "time limit",
    "same_samples": "DistributedSampler",
    "not_finite": "infinite gradient",
    "slower_with_more": "Why is my DDP slower than one process?",
    "not_installed": "activate the environment",
    "nccl_error": "NCCL_DEBUG=INFO",
    "rank_out_of_range": "WORLD_SIZE",
    "no_sync_sharded": "no_sync()",
    "grad_scaler": "GradScaler",
}


@pytest.mark.parametrize("cause", load(ROOT), ids=lambda cause: cause.name)
def test_page_that_is_named_has_the_cause(cause):
    """Its card of the gallery, its row of lesson 19, or a word of the page."""
    if cause.gallery:  # test_failure_search.py: what a card's address is
        assert cause.read.endswith("#failure-" + cause.gallery[0].replace("_", "-"))
        return
    if "#cause-" in cause.read:  # test_diagnose_causes.py: what is shown there
        assert cause.read.endswith("#cause-" + cause.name.replace("_", "-"))
        return
    if "#mistake-" in cause.read:  # test_diagnose_mistakes.py: what is shown there
        assert cause.read.endswith(f"#{cause.name}")
        return
    page = cause.read.split(", ")[0]
    assert ON_PAGES[cause.name] in page_text(ROOT / page), cause.read


# -- the command --------------------------------------------------------------------
def test_command_names_rank_cause_cure_and_page():
    result = workshop(ROOT, "diagnose", str(HERE / "tee_of_torchrun.txt"))
    assert result.returncode == 0, result
    heads = [line.split(":")[0] for line in result.stdout.splitlines()]
    assert heads[0] == "First to fail" and {"Cause", "Cure", "Read"} <= set(heads)
    assert "rank 1" in result.stdout and "tee_of_torchrun.txt:5" in result.stdout


def test_healthy_log_gets_no_cause_and_status_1():
    healthy = ROOT / "docs/transcripts/05_two_ranks.txt"
    result = workshop(
        ROOT, "diagnose", str(healthy), str(HERE / "names_of_healthy_runs.txt")
    )
    assert result.returncode == 1
    assert result.stdout.startswith("No failure found in ")
    assert "slow or wrong" in result.stdout and "19_when_it_breaks" in result.stdout
    assert result.stdout.count("\n") == 1


def test_unknown_error_is_quoted_and_nothing_is_claimed():
    result = workshop(ROOT, "diagnose", str(HERE / "own_error.txt"))
    assert result.returncode == 1
    assert "Cause:" not in result.stdout
    assert "ValueError: image 1017 has 63 pixels" in result.stdout
    assert "rank 1" in result.stdout


@pytest.mark.parametrize("name", ["missing.log", "binary.log", "empty"])
def test_bad_input_is_one_sentence_that_names_it(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary.log").write_bytes(b"\x7fELF\0\0\0")
    result = workshop(ROOT, "diagnose", str(tmp_path / name))
    assert result.returncode == 2 and result.stdout == ""
    assert len(result.stderr.splitlines()) == 1 and name in result.stderr


@pytest.mark.parametrize("later", ["ValueError: label 7", "KeyError: 'lr'"])
def test_error_that_a_rank_survived_is_no_certain_cause(tmp_path, later):
    caught = "[rank0]: torch.OutOfMemoryError: CUDA out of memory\nEpoch 1 done\n"
    told, sure = diagnose(written(tmp_path, f"{caught}[rank0]: {later}\n"), ROOT)
    assert not sure and told[1].startswith("Not sure")
    chained = "[rank0]: During handling of the above exception, another exception"
    log = written(tmp_path, f"{caught}{chained} occurred:\n[rank0]: {later}\n")
    assert diagnose(log, ROOT)[1]


@pytest.mark.parametrize("head", ["", "Traceback (most recent call last):\n"])
def test_log_with_a_lost_connection_only_is_no_success(tmp_path, head):
    lost = "RuntimeError: [pair.cc:534] Connection closed by peer [127.0.0.1]:2997"
    told, sure = diagnose(written(tmp_path, head + lost), ROOT)
    assert not sure and told[0].startswith("This log only says that another rank")
    assert lost in told[1] and len(told) == 2


@pytest.mark.parametrize(
    ("warning", "cause"),
    [
        (
            "WARNING: Open MPI failed to TCP connect to a peer MPI process.  This\n"
            "should not happen.\n\nYour Open MPI job may now hang or fail.\n",
            "mpi_network",
        ),
        ("WARNING: There was an error initializing an OpenFabrics device.\n", None),
    ],
)
def test_warning_of_open_mpi_counts_only_where_the_job_may_fail(
    tmp_path, warning, cause
):
    log = written(tmp_path, warning)
    found = named(candidates(load(ROOT), log, first_failed(log)))
    assert (found and found.cause.name) == cause


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (
            "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
            "too_few_nodes",
        ),
        (
            "torch.distributed.DistNetworkError: The server socket has failed to "
            "listen on any local network address. port: 80, useIpv6: false, code: -13, "
            "name: EACCES, message: permission denied",
            "port_not_allowed",
        ),
        (
            "requests.exceptions.ConnectionError: HTTPConnectionPool(host='0.0.0.0', "
            "port=8000): Max retries exceeded with url: /health/ (Caused by "
            "NewConnectionError(': Failed to establish a new connection: [Errno 111] "
            "Connection refused'))",
            "server_beside",
        ),
        (
            "NVRM: Xid (PCI:0000:1b:00): 74, pid=1, name=python, NVLink: fatal error\n"
            "[rank2]: RuntimeError: CUDA error: an illegal memory access was "
            "encountered",
            "gpu_hardware",
        ),
        (
            "NVRM: Xid (PCI:0000:1b:00): 31, pid=1, name=python, MMU Fault\n"
            "[rank2]: RuntimeError: CUDA error: an illegal memory access was "
            "encountered",
            "illegal_access",
        ),
        (
            "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  "
            "against (9, 1, 0) but found runtime version (8, 9, 7).",
            "wrong_library",
        ),
        ("RuntimeError: Numpy is not available", "numpy_version"),
        (
            "ValueError: Free memory on device (30.1/79.1 GiB) on startup is less than "
            "desired GPU memory utilization (0.9, 71.2 GiB).",
            "vllm_memory",
        ),
        (
            "pytorch_lightning.utilities.exceptions.MisconfigurationException: You "
            "requested GPUs: [1]\n But your machine only has: [0]",
            "more_ranks_than_gpus",
        ),
        (
            "RuntimeError: CUDA error: the provided PTX was compiled with an "
            "unsupported toolchain.",
            "driver_too_old",
        ),
        (
            "RuntimeError: element 0 of tensors does not require grad and does not "
            "have a grad_fn",
            "no_gradient",
        ),
        ("ModuleNotFoundError: No module named 'numpy._core.x'", "numpy_version"),
        (
            "RuntimeError: The total norm of order 2.0 for gradients from `parameters` "
            "is non-finite, so it cannot be clipped.",
            "loss_is_nan",
        ),
        (
            "KeyError: 'qwen9'\n"
            "During handling of the above exception, another exception occurred:\n"
            "ValueError: The checkpoint you are trying to load has model type `qwen9` "
            "but Transformers does not recognize this architecture.",
            "unknown_architecture",
        ),
        (
            "ImportError: QqqTokenizer requires the SentencePiece library but it was "
            "not found in your environment.",
            "not_installed",
        ),
    ],
)
def test_errors_that_resemble_each_other_have_their_own_causes(line, name, tmp_path):
    log = written(tmp_path, f"{line}\n")
    assert named(candidates(load(ROOT), log, first_failed(log))).cause.name == name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("NVRM: Xid (PCI:0000:1b:00): 43, pid=1, name=python, Ch 8", "xid"),
        (
            "NVRM: Xid (PCI:0000:01:00): 144, SAW_MVB Nonfatal XC0 i0 Link 0",
            "xid",
        ),
        (
            "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
            "cut_file",
        ),
        (
            "botocore.exceptions.ClientError: An error occurred (SlowDown) when "
            "calling the GetObject operation: Please reduce your request rate.",
            "too_many_requests",
        ),
    ],
)
def test_line_with_more_than_one_cause_leaves_it_open(line, name, tmp_path):
    log = written(tmp_path, f"{line}\n")
    found = candidates(load(ROOT), log, first_failed(log))
    assert named(found) is None
    assert name in [each.cause.name for each in found]


def test_rank_that_waited_for_a_key_of_the_store_is_not_the_first(tmp_path):
    line = "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /a/0/7"
    log = written(tmp_path, f"[rank0]: {line}\n")
    first = first_failed(log)
    assert first.ranks == ()
    found = candidates(load(ROOT), log, first)
    assert [each.cause.name for each in found] == ["store_key"]
    assert named(found) is None


STEP_ENDS = """\
srun: error: n3: task 5: Exited with exit code 1
srun: Terminating StepId=55.0
"""
STEP_CANCELLED = (
    "slurmstepd: error: *** STEP 55.0 ON n1 CANCELLED AT 2026-11-29T02:02:02 ***\n"
)


def test_step_that_srun_ended_after_a_failure_was_not_cancelled_by_a_person(tmp_path):
    log = written(tmp_path, STEP_ENDS + STEP_CANCELLED)
    assert candidates(load(ROOT), log, first_failed(log)) == []
    log = written(tmp_path, STEP_CANCELLED)
    found = candidates(load(ROOT), log, first_failed(log))
    assert [each.cause.name for each in found] == ["cancelled"]


def test_files_without_text_are_refused(tmp_path):
    """That no failure was found in 0 lines would be no help."""
    with pytest.raises(UserError, match="there is no text in run: the job may"):
        must_have_text(written(tmp_path, "\n\n"), ["run"])
    must_have_text(written(tmp_path, "step 1\n"), ["run"])
