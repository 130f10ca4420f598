"""``workshop diagnose``: which of several lines tells the cause, and which only follow.

Shortened and reworded from public threads, which causes.toml names as sources.
"""

from __future__ import annotations

import pytest

from tests.grader.test_diagnose_other_hands import read, told

STEPS = "step 10 loss 3.1\nstep 20 loss 3.0\n"
CHAIN = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 3, in read
[rank1]: KeyError: 'weights'
[rank1]:
[rank1]: {marker}
[rank1]:
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 9, in main
[rank1]: ValueError: no such part: weights
"""
HANDLING = "During handling of the above exception, another exception occurred:"
DIRECT = "The above exception was the direct cause of the following exception:"


@pytest.mark.parametrize("marker", [HANDLING, DIRECT])
@pytest.mark.parametrize("mark", ["[rank1]: ", ""])
def test_last_exception_of_a_chain_is_shown_and_the_one_that_it_came_of(
    tmp_path, marker, mark
):
    said = told(tmp_path, CHAIN.format(marker=marker).replace("[rank1]: ", mark))
    row = next(n for n, each in enumerate(said) if "ValueError: no such part" in each)
    assert said[row + 1] == "It came of an earlier one:"
    assert "KeyError: 'weights'" in said[row + 2]


def test_two_exceptions_that_are_no_chain_stay_in_their_order(tmp_path):
    said = told(tmp_path, CHAIN.format(marker="Once more:"))
    assert any("KeyError: 'weights'" in each for each in said[:3])
    assert not any("came of" in each for each in said)


def test_lost_partner_at_the_end_of_a_chain_does_not_replace_the_exception(tmp_path):
    text = CHAIN.format(marker=HANDLING).replace(
        "ValueError: no such part: weights", "RuntimeError: Connection closed by peer"
    )
    assert any("KeyError: 'weights'" in each for each in told(tmp_path, text)[:3])


KEEP_ALIVE = (
    "WARNING:torch.distributed.elastic.rendezvous.dynamic_rendezvous:The node 'n3_1' "
    "has failed to send a keep-alive heartbeat to the rendezvous 'none' due to an "
    "error of type RendezvousConnectionError.\n"
)
CANCELLED = "slurmstepd: error: *** JOB 21 ON n1 CANCELLED AT 2022-04-24T08:10:11 ***\n"


def test_agent_that_lost_the_store_was_not_only_cancelled(tmp_path):
    assert read(tmp_path, KEEP_ALIVE * 3 + CANCELLED)[1:] == (None, "store_left")


@pytest.mark.parametrize(
    "text",
    [
        STEPS + "Training done.\n" + KEEP_ALIVE,
        "[rank2]: ValueError: label 7 of 5\n" + KEEP_ALIVE + CANCELLED,
    ],
)
def test_lost_store_after_the_end_or_after_an_error_is_no_cause(tmp_path, text):
    assert read(tmp_path, text)[2] != "store_left"


UNRESOLVED = (
    "[W socket.cpp:697] [c10d] The IPv6 network addresses of (n1.local, 56412) cannot "
    "be retrieved (gai error: 8 - nodename nor servname provided, or not known).\n"
)
PRESSED = (
    "^C[2025-02-09 15:31:10,101] torch.distributed.elastic.agent.server.api: [WARNING] "
    "Received 2 death signal, shutting down workers\n"
)


def test_name_that_was_not_resolved_until_ctrl_c_is_the_cause(tmp_path):
    text = UNRESOLVED * 2
    assert read(tmp_path, text + PRESSED)[2] == "own_name_not_resolved"
    assert read(tmp_path, text + STEPS + PRESSED)[2] == "interrupted"
    assert told(tmp_path, text + STEPS)[0].startswith("No failure found")


NOT_STARTED = "ORTE was unable to reliably start one or more daemons.\n"


def test_name_that_ssh_did_not_resolve_explains_the_daemon(tmp_path):
    text = "ssh: Could not resolve hostname w-1.w.svc: Name or service not known\n"
    assert read(tmp_path, text + NOT_STARTED)[1] == "name_not_resolved"
    assert read(tmp_path, NOT_STARTED)[1] == "mpi_daemon"


IN_LOADER = """\
Traceback (most recent call last):
  File "train.py", line 241, in train
    batch = next(self.dl)
  File "/lib/python3.8/site-packages/torch/utils/data/dataloader.py", line 1132, in get
    data = self._data_queue.get(timeout=timeout)
  File "/lib/python3.8/multiprocessing/connection.py", line 931, in wait
    ready = selector.select(timeout)
KeyboardInterrupt
"""


def test_ctrl_c_that_met_the_data_loader_says_so(tmp_path):
    said = told(tmp_path, PRESSED + IN_LOADER)
    assert "It stood here:" in said
    assert any(row.startswith("It waited for a batch of its data") for row in said)
    elsewhere = IN_LOADER.replace("torch/utils/data/dataloader.py", "x/y.py")
    assert not any("a batch of its" in row for row in told(tmp_path, elsewhere))


MISMATCH = (
    "[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is "
    "running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, "
    "TensorShape=[1435], TensorDtypes=Float), but Rank 2 is running collective: "
    "CollectiveFingerPrint(SequenceNumber=7, OpType={op}, TensorShape=[1436], "
    "TensorDtypes=Float).\n"
    "Root Cause (first observed failure):\n"
    "  rank      : 1 (local_rank: 1)\n"
)


def test_ranks_whose_sizes_differ_are_both_named(tmp_path):
    text = MISMATCH.format(op="ALLREDUCE")
    assert read(tmp_path, text)[:2] == ((), "other_sizes")
    assert "ranks 1 and 2 called ALLREDUCE with tensors" in told(tmp_path, text)[0]
    assert read(tmp_path, MISMATCH.format(op="BROADCAST"))[1] == "collective_mismatch"


REFUSED = (
    "{mark}RuntimeError: Gloo connectFullMesh failed with [/src/gloo/transport/tcp/"
    "pair.cc:152] timed out connecting: SO_ERROR: Connection refused, "
    "remote=[127.0.0.1]:14215\n"
)
OF_RAY = "(EngineCore_DP0 pid=291) EngineCore failed to start.\n"


@pytest.mark.parametrize(
    "mark, beside, several",
    [
        ("(RayWorker pid=72, ip=10.1.44.9) ", OF_RAY, True),
        ("(RayWorker pid=72, ip=10.1.44.9) ", "", False),
        ("[rank8]: ", "", True),
        ("[rank1]: ", "", False),
        ("[rank1]: ", "torchrun --nnodes=2 train.py\n", True),
    ],
)
def test_loopback_address_is_wrong_only_between_nodes(tmp_path, mark, beside, several):
    found = read(tmp_path, REFUSED.format(mark=mark) + beside)
    assert (found[1] == "loopback_address") == several


FULL = "RuntimeError: CUDA error: out of memory\n"


def test_memory_that_the_run_had_not_taken_is_somebody_elses(tmp_path):
    assert read(tmp_path, "rank: 2, memory allocated: 0\n" + FULL)[2] == "gpu_taken"
    assert read(tmp_path, "memory allocated: 71.2 GiB\n" + FULL)[1] == (
        "gpu_out_of_memory"
    )


FAULT = (
    "Memory access fault by GPU node-2 (Agent handle: 0x5d) on address (nil). Reason: "
    "Unknown.\n"
)


def test_variable_that_overrides_the_gpus_kind_is_named_with_the_fault(tmp_path):
    text = "+ export HSA_OVERRIDE_GFX_VERSION=10.3.0\n"
    assert read(tmp_path, text + FAULT)[2] == "hsa_override"
    assert read(tmp_path, FAULT)[1] == "illegal_access"
    assert told(tmp_path, text + STEPS)[0].startswith("No failure found")


def test_peer_that_mpi_lost_is_named_by_its_host(tmp_path):
    text = (
        "[1,7]<stderr>:An MPI communication peer process has unexpectedly "
        "disconnected.  This\n"
        "[1,7]<stderr>:  Local host: node313\n"
        "[1,7]<stderr>:  Peer host:  node316\n"
    )
    assert read(tmp_path, text)[2] == "mpi_peer_lost"
    assert any("Peer host: node316" in row for row in told(tmp_path, text))


EVICTED = """\
$ kubectl describe pod bert-worker-1
Name:             bert-worker-1
Status:           Failed
Reason:           Evicted
Message:          The node was low on resource: ephemeral-storage. Threshold quantity: 9
"""


def test_pod_that_was_evicted_is_named(tmp_path):
    assert read(tmp_path, EVICTED)[1] == "pod_evicted"
    assert any("Name: bert-worker-1" in row for row in told(tmp_path, EVICTED))


VNI = "libfabric:5:1::cxi:fabric:cxip_nic_get_rgroup_vni():253<warn> : Failed to find "
OF_DOMAIN = (
    "n1:5:9 [0] NCCL WARN NET/OFI Couldn't open a fabric access domain. RC: -38, "
    "ERROR: Function not implemented\n"
)


def test_missing_vni_is_the_cause_only_where_the_domain_failed(tmp_path):
    warned = f"{VNI}valid default rgroup and vni for cxi0\n"
    assert read(tmp_path, warned + OF_DOMAIN)[1] == "cxi_vni"
    assert read(tmp_path, OF_DOMAIN)[2] == "libfabric"
    assert told(tmp_path, warned + STEPS)[0].startswith("No failure found")


@pytest.mark.parametrize(
    "line, other, cause",
    [
        (
            "host_config.h:143:2: error: #error -- unsupported GNU version! gcc "
            "versions later than 12 are not supported!",
            "RuntimeError: Error building extension 'fused_adam'",
            "compiler_too_new",
        ),
        (
            "MIOpen Error: /src/sqlite_db.cpp:227: Internal error while accessing "
            "SQLite database: disk I/O error",
            "RuntimeError: miopenStatusInternalError",
            "miopen_cache",
        ),
        (
            "slurmstepd: error: pyxis:     [ERROR] URL https://registry-1.docker.io/v2/a/"
            "manifests/b returned error code: 401 Unauthorized",
            "slurmstepd: error: pyxis: couldn't start container",
            "image_not_pulled",
        ),
        (
            "Failed: Cuda error /w/csrc/custom_all_reduce.cuh:307 'peer access is not "
            "supported between these two devices'",
            "",
            "custom_all_reduce",
        ),
        (
            "n1:13:15 [0] transport/net_ib.cc:1038 NCCL WARN NET/IB : req 0/1 tag 0 "
            "peer 10.10.23.6<58683> collective mismatch error, local size 496640 "
            "remote size 65536",
            "",
            "sizes_on_the_wire",
        ),
        (
            "Exception: Installed CUDA version 11.0 does not match the version torch "
            "was compiled with 10.1, unable to compile cuda/cpp extensions",
            "",
            "extension_build",
        ),
        (
            "submitit WARNING (2022-08-12 02:06:11,453) - Caught signal SIGUSR2 on n1: "
            "this job is preempted.",
            "slurmstepd: error: *** JOB 608 ON n1 CANCELLED AT 2022-08-12T02:06:12 DUE "
            "TO JOB REQUEUE ***",
            "requeued_by_submitit",
        ),
        (
            "RuntimeError: No backend type associated with device type npu",
            "",
            "backend_of_accelerator",
        ),
    ],
)
def test_decisive_line_is_the_cause_and_what_follows_is_not(
    tmp_path, line, other, cause
):
    assert read(tmp_path, f"{line}\n{other}\n")[1] == cause
    words = " ".join(line.split())[:50]  # as a quote has them
    assert any(words in row for row in told(tmp_path, f"{line}\n{other}\n"))


@pytest.mark.parametrize(
    "line",
    [
        "MIOpen(HIP): Warning [FindFft] /src/sqlite_db.cpp:212: Internal error while "
        "accessing SQLite database: disk I/O error",
        "Installed CUDA version 11.3 does not match the version torch was compiled "
        "with 11.7 but since the APIs are compatible, accepting this combination",
        "Custom allreduce is disabled because it's not supported on more than two GPUs",
    ],
)
def test_warning_that_looks_like_these_is_no_failure(tmp_path, line):
    assert told(tmp_path, f"{line}\n{STEPS}")[0].startswith("No failure found")


@pytest.mark.parametrize(
    "error, theirs",
    [
        ("HIP out of memory. Tried to allocate 2 GiB", "rocm-smi for other processes"),
        ("CUDA out of memory. Tried to allocate 2 GiB", "nvidia-smi for other"),
    ],
)
def test_advice_names_the_tools_of_the_logs_gpus(tmp_path, error, theirs):
    said = told(tmp_path, f"[rank2]: torch.OutOfMemoryError: {error}\n")
    assert any(theirs in row for row in said)


def test_advice_for_other_gpus_names_their_tools(tmp_path):
    assert any("AMD_SERIALIZE_KERNEL=3" in row for row in told(tmp_path, FAULT))
    intel = (
        "RuntimeError: level_zero backend failed (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"
    )
    said = told(tmp_path, f"[rank5]: {intel}\n")
    assert any("torch.xpu.max_memory_allocated" in row for row in said)
    assert any("xpu-smi" in row for row in said)


def test_node_that_failed_is_shown_and_not_the_one_that_reports_it(tmp_path):
    text = (
        "srun: error: Node failure on nid001288\n"
        "slurmstepd: error: *** JOB 3 ON nid001200 CANCELLED AT 2024-06-01T03:11:12 "
        "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"
    )
    assert any("Node failure on nid001288" in row for row in told(tmp_path, text))
