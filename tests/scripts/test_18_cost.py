"""src/instruments/18_cost.py: the fit, what it predicts from, and one small run."""

import re
import subprocess
import sys
from importlib import import_module

import pytest

from tests.launched import STANDALONE, run
from tests.scripts.trainings import SRC

cost = import_module("instruments.18_cost")

from common.byte_gpt import ByteGPT, Sizes  # noqa: E402
from common.cost.formulas import (  # noqa: E402
    Layout,
    data_bytes,
    data_seconds,
    stream_bytes,
    tensor_bytes,
    tensor_calls,
    tensor_seconds,
)
from common.cost.layouts import GPT, layouts  # noqa: E402

SIZES = [0, *cost.MESSAGES]  # the first is a ping


def test_exact_times_give_the_link_back():
    alpha, beta = 3e-4, 1 / 2e9
    seconds = [alpha + beta * size for size in SIZES]
    assert cost.fit(SIZES, seconds) == pytest.approx((alpha, beta), rel=1e-6)


def test_small_messages_count_as_much_as_large_ones():
    """10 % of noise on the largest message doesn't move alpha by 10 %."""
    seconds = [1e-4 + size * 1e-9 for size in SIZES]
    seconds[-1] *= 1.1
    alpha, beta = cost.fit(SIZES, seconds)
    assert alpha == pytest.approx(1e-4, rel=0.02)
    assert beta > 1e-9


@pytest.mark.parametrize("factor", [1 / 4, 4])
@pytest.mark.parametrize("wrong", range(9))
def test_one_wrong_time_moves_beta_little_whether_too_fast_or_too_slow(wrong, factor):
    """Three of the messages are mostly bytes, so one is a third of log(beta)."""
    alpha, beta = 5e-4, 1 / 25e6
    seconds = [alpha + beta * size for size in SIZES]
    seconds[wrong] *= factor
    moved = cost.fit(SIZES, seconds)[1] / beta
    limit = 1.3 if wrong < 6 else 1.1 * 4 ** (1 / 3)
    assert 1 / limit < moved < limit


def test_small_messages_that_are_all_slow_move_alpha_but_not_beta():
    """As where ranks share cores: the time of large ones still gives the link."""
    alpha, beta = 2e-4, 1 / 25e6
    seconds = [alpha + beta * size for size in SIZES]
    slow = [5 * t for t in seconds[:5]] + seconds[5:]
    found = cost.fit(SIZES, slow)
    assert 3 < found[0] / alpha < 6
    assert found[1] / beta == pytest.approx(1, abs=0.1)


def test_times_that_do_not_grow_are_all_alpha():
    alpha, beta = cost.fit(SIZES, [1e-3] * len(SIZES))
    assert alpha == pytest.approx(1e-3, rel=0.01) and beta < 1e-3 / SIZES[-1]


@pytest.mark.parametrize("ranks", [2, 4])
def test_cluster_gives_the_all_reduce_back_that_was_fitted(ranks):
    """2 (N - 1) messages of a ring, and bytes in 32 bits where formulas count 16."""
    alpha, beta = 3e-4, 1 / 2e9
    cluster = cost.cluster_of(alpha, beta, ranks, flops=1e9)
    layout = Layout(tensor=ranks, micro_batch=8)
    each = alpha + beta * 2 * stream_bytes(GPT, layout)
    sent = tensor_seconds(GPT, layout, cluster)
    assert sent == pytest.approx(tensor_calls(GPT, layout) * each)
    layers = Layout(data=ranks, micro_batch=8)
    whole = alpha * GPT.layers + beta * 4 * data_bytes(GPT, layers) / (
        4 * (ranks - 1) / ranks
    )
    assert data_seconds(GPT, layers, cluster) == pytest.approx(whole)


def test_without_a_link_all_layouts_compute_equally_long_and_pipelines_idle():
    cluster = cost.cluster_of(0, 1e-30, ranks=2, flops=1e9)
    alone = cost.predict(Layout(micro_batch=4), cluster)
    found = {n: cost.predict(x, cluster) for n, x in layouts(4, 16).items()}
    assert found.pop("PP") == pytest.approx(alone * (1 + 3 / 4))
    assert list(found) == ["DDP", "FSDP", "TP", "FSDP x TP"]
    assert all(seconds == pytest.approx(alone) for seconds in found.values())


def test_accelerators_hide_what_fits_behind_computing(monkeypatch):
    """DDP hides behind backward, FSDP behind the step; tensor parallel never."""
    cluster = cost.cluster_of(0, 1e-9, ranks=2, flops=5e11)
    waits = {n: cost.predict(x, cluster) for n, x in layouts(2, 16).items()}
    monkeypatch.setattr(cost.distributed, "count_accelerators", lambda: 1)
    hides = {n: cost.predict(x, cluster) for n, x in layouts(2, 16).items()}
    alone = cost.predict(Layout(micro_batch=8), cluster)
    assert hides["DDP"] == hides["FSDP"] == pytest.approx(alone)
    assert waits["FSDP"] > waits["DDP"] > 1.01 * alone
    assert hides["TP"] == waits["TP"] and hides["PP"] == waits["PP"]
    slow = cost.cluster_of(0, 1e-6, ranks=2, flops=5e11)
    ddp = layouts(2, 16)["DDP"]
    sending = data_seconds(GPT, ddp, slow)
    base = cost.predict(Layout(micro_batch=8), slow)
    assert cost.predict(ddp, slow) == pytest.approx(sending + base / 3)


def test_own_work_of_a_method_is_added_and_of_a_grid_that_of_both(capsys):
    """3 ms of FSDP and 5 ms of tensor parallel; nothing is sent."""
    milliseconds = {cost.ONE: 20, "DDP": 20, "FSDP": 24, "TP": 30, "PP": 30}
    milliseconds |= {"FSDP" + cost.SILENT: 23, "TP" + cost.SILENT: 25}
    times = {name: [ms / 1e3] for name, ms in milliseconds.items()}
    config = cost.Config(batch_size=16, predict=4, rounds=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost.dist, "get_world_size", lambda: 2)
        patch.setattr(cost, "fit", lambda *_: (0, 1e-30))
        cost.report(times, [[1] * 9], 1e9, config)
    printed = capsys.readouterr().out
    rows = re.findall(r"^(\w[\w ]*?) +([\d.]+)(?: +[\d.]+ +[+-]\d+%)?$", printed, re.M)
    for_2, for_4 = dict(rows[:4]), dict(rows[4:])
    assert for_2 == {"DDP": "20.0", "FSDP": "23.0", "TP": "25.0", "PP": "30.0"}
    assert for_4 == {"DDP": "10.0", "FSDP": "13.0", "TP": "15.0", "PP": "17.5",
                     "FSDP x TP": "18.0"}  # fmt: skip


def test_layouts_use_all_ranks_and_the_whole_batch():
    for ranks in (2, 3, 4, 8, 64):
        for name, layout in layouts(ranks, 2 * ranks).items():
            assert layout.tensor * layout.pipeline * layout.data == ranks, name
            sequences = layout.data * layout.micro_batches * layout.micro_batch
            assert sequences == 2 * ranks, name
    assert set(layouts(8, 8)) == {"DDP", "FSDP", "FSDP x TP"}  # 12 heads, 4 blocks


def test_bytes_of_stages_0_and_3_are_those_that_this_model_sends():
    """The formula, in 16 bits, ties the head to the embedding; FSDP keeps a root."""
    model, ranks = ByteGPT(Sizes()), 4
    embed, head, blocks = (
        4 * sum(p.numel() for p in part.parameters())
        for part in (model.embed, model.head, model.blocks)
    )
    wire = 2 * (ranks - 1) / ranks  # of an all-reduce
    for stage, sent in ((0, 1.0), (3, 1.5)):
        formula = data_bytes(GPT, Layout(data=ranks, stage=stage))
        assert 2 * formula == pytest.approx(wire * sent * (blocks + embed))
    assert head < 0.06 * (blocks + embed)


SENT = """
import sys
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

sys.path.insert(0, sys.argv[1])
from common.cost.layouts import layouts, make_step
from common.cost.measure import Traffic

dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
for name in ("FSDP", "TP", "FSDP x TP"):
    step = make_step(layouts(4, 4)[name], torch.device("cpu"), silent=True)
    with Traffic() as traffic:
        step()
    print(name, traffic.wire_bytes(), sep=",")
"""


@pytest.mark.nightly
def test_measured_steps_send_what_the_formulas_predict():
    """DDP's and a pipeline's calls can't be counted in a group that is not there."""
    command = [sys.executable, "-W", "ignore", "-c", SENT, str(SRC)]
    printed = subprocess.check_output(command, text=True).splitlines()
    sent = {name: int(n) for name, n in (line.split(",") for line in printed)}
    formula = {
        name: 2 * (data_bytes(GPT, layout) + tensor_bytes(GPT, layout))
        for name, layout in layouts(4, 4).items()
    }
    assert sent["TP"] == formula["TP"]
    for name in ("FSDP", "FSDP x TP"):  # the formula ties the head to the embedding
        assert formula[name] < sent[name] < 1.06 * formula[name]


ALONE = """
import sys
from datetime import timedelta
import torch
import torch.distributed as dist

sys.path.insert(0, sys.argv[1])
from common.cost.layouts import layouts, make_step
from common.gpt_training import run_and_exit

def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    for name in ("FSDP", "TP"):
        step = make_step(layouts(2, 4)[name], torch.device("cpu"), silent=True)
        if dist.get_rank() == 0:
            step()
            print(name, "needs no partner", flush=True)
        dist.barrier()

run_and_exit(main)
"""


@pytest.mark.full
def test_silent_step_of_one_rank_waits_for_no_other(tmp_path):
    (tmp_path / "alone.py").write_text(ALONE, encoding="utf-8")
    command = [*STANDALONE, "--nproc-per-node=2", tmp_path / "alone.py", SRC]
    done = run(tmp_path, command)
    assert done.returncode == 0, done.stderr
    said = ["FSDP needs no partner", "TP needs no partner"]
    assert done.stdout.splitlines() == said


PINGS = """
import sys
from importlib import import_module
import torch
import torch.distributed as dist

sys.path.insert(0, sys.argv[1])
ping = import_module("instruments.18_cost").ping
dist.init_process_group("gloo")
tensor = torch.tensor([10.0 + dist.get_rank()])
ping(tensor)
print(f"rank {dist.get_rank()} has {tensor.item()}\\n", end="", flush=True)
dist.barrier()  # rank 2 has no ping to wait for: it would leave while others connect
dist.destroy_process_group()
"""


@pytest.mark.full
def test_ping_goes_from_rank_0_to_rank_1_and_back(tmp_path):
    (tmp_path / "pings.py").write_text(PINGS, encoding="utf-8")
    command = [*STANDALONE, "--nproc-per-node=3", tmp_path / "pings.py", SRC]
    done = run(tmp_path, command)
    assert done.returncode == 0, done.stderr
    said = ["rank 0 has 10.0", "rank 1 has 10.0", "rank 2 has 12.0"]
    assert sorted(done.stdout.splitlines()) == said


def test_run_prints_the_link_the_table_and_mfu(tmp_path):
    options = ["--batch-size", 4, "--rounds", 1, "--predict", 4]
    program = [SRC / "instruments/18_cost.py", *options]
    done = run(tmp_path, [*STANDALONE, "--nproc-per-node=2", *program])
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    rows = re.findall(r"^(\w+) +[\d.]+ +[\d.]+ +[+-]\d+%$", done.stdout, re.M)
    assert rows == ["DDP", "FSDP", "TP", "PP"]
    own = r"^(\w+) adds, without its messages: -?[\d.]+ ms$"
    assert re.findall(own, done.stdout, re.M) == ["FSDP", "TP"]
    for_4 = done.stdout.partition("4 ranks, if each computes")[2]
    rows = re.findall(r"^(\w[\w ]*?) +[\d.]+$", for_4, re.M)
    assert rows == ["DDP", "FSDP", "TP", "PP", "FSDP x TP"]
    assert len(re.findall(r"bytes +\d+ us, the line says", done.stdout)) == 8
    assert re.search(r"^a ping of 4 bytes, there and back: \d+ us$", done.stdout, re.M)
    assert re.search(
        r"^MFU against that: \d+% alone, \d+% with DDP$", done.stdout, re.M
    )


@pytest.mark.full
def test_layouts_that_do_not_fit_are_named_by_pytorch(tmp_path):
    program = [SRC / "instruments/18_cost.py", "--batch-size", 10**9, "--rounds", 1]
    done = run(tmp_path, [*STANDALONE, "--nproc-per-node=2", *program])
    assert done.returncode != 0
    report = done.stderr.partition("Root Cause")[2]
    assert "can't allocate memory" in report


@pytest.mark.full
def test_bad_input_is_one_sentence(tmp_path):
    program = [SRC / "instruments/18_cost.py", "--batch-size", 3]
    done = run(tmp_path, [*STANDALONE, "--nproc-per-node=2", *program])
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if "18_cost.py: error" in line]
    assert len(said) == 1, done.stderr
    assert "cannot be divided among 2 ranks" in said[0]
