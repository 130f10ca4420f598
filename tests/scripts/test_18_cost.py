"""src/18_cost.py: the fit, what it predicts from, and one small run."""

import re
import sys
from importlib import import_module

import pytest
import torch

from tests.launched import STANDALONE, run
from tests.scripts.trainings import SRC

cost = import_module("18_cost")

from common.byte_gpt import ByteGPT, Sizes  # noqa: E402
from common.formulas import Layout, Model, data_bytes  # noqa: E402


def test_exact_times_give_the_link_back():
    alpha, beta = 3e-4, 1 / 2e9
    seconds = [alpha + beta * size for size in cost.MESSAGES]
    assert cost.fit(cost.MESSAGES, seconds) == pytest.approx((alpha, beta), rel=1e-9)


def test_small_messages_count_as_much_as_large_ones():
    """10 % of noise on the largest message doesn't move alpha by 10 %."""
    seconds = [1e-4 + size * 1e-9 for size in cost.MESSAGES]
    seconds[-1] *= 1.1
    alpha, beta = cost.fit(cost.MESSAGES, seconds)
    assert alpha == pytest.approx(1e-4, rel=0.02)
    assert beta > 1e-9


def test_prediction_adds_every_message_to_the_computation():
    sent = [(1, 1000), (1.5, 200)]
    expected = 5.0 + (0.1 + 1000 * 0.002) + 1.5 * (0.1 + 200 * 0.002)
    assert cost.predict(5.0, sent, 0.1, 0.002) == pytest.approx(expected)


def test_ddp_sends_every_parameter_once_and_fsdp_half_as_much_again_of_the_blocks():
    model = ByteGPT(Sizes())
    whole = 4 * sum(p.numel() for p in model.parameters())
    blocks = 4 * sum(p.numel() for p in model.blocks.parameters())
    sent = {
        name: sum(share * size for share, size in parts)
        for name, parts in cost.messages(model).items()
    }
    assert sent == {"DDP": whole, "FSDP": whole + blocks / 2}


def test_bytes_are_those_of_the_calculators_formula_for_stages_0_and_3():
    """Twice the formula's, which sends 16 bits and has no head and no last norm."""
    model, sizes, ranks = ByteGPT(Sizes()), Sizes(), 4
    gpt = Model(sizes.blocks, sizes.width, sizes.heads, sizes.context, cost.BYTES)
    embed, head = (
        4 * sum(p.numel() for p in part.parameters())
        for part in (model.embed, model.head)
    )
    # FSDP keeps the root whole: it gathers the embeddings once, the formula twice
    more = {"DDP": 2 * head, "FSDP": 2 * head - embed}
    for (name, sent), stage in zip(cost.messages(model).items(), (0, 3), strict=True):
        formula = data_bytes(gpt, Layout(data=ranks, stage=stage, micro_batches=1))
        wire = 2 * sum(share * size for share, size in sent) * (ranks - 1) / ranks
        assert wire == 2 * formula + more[name] * (ranks - 1) / ranks


def test_buckets_are_those_of_ddp():
    """1 MiB first, then 25 MiB; a model of 60 MB has four."""
    model = ByteGPT(Sizes())
    model.large = torch.nn.Parameter(torch.empty(15_000_000, device="meta"))
    sizes = [size for _, size in cost.messages(model)["DDP"]]
    assert sizes[:3] == [2**20, 25 * 2**20, 25 * 2**20]
    assert len(sizes) == 4


def test_run_prints_the_link_the_table_and_mfu(tmp_path):
    options = ["--batch-size", 2, "--rounds", 1]
    program = [SRC / "18_cost.py", *options]
    done = run(tmp_path, [*STANDALONE, "--nproc-per-node=2", *program])
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    rows = re.findall(r"^(DDP|FSDP) +[\d.]+ +[\d.]+ +[+-]\d+%$", done.stdout, re.M)
    assert rows == ["DDP", "FSDP"]
    assert len(re.findall(r"bytes +\d+ us, the line says", done.stdout)) == 8
    assert re.search(
        r"^MFU against that: \d+% alone, \d+% with DDP$", done.stdout, re.M
    )


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([sys.executable], "torchrun did not start this process"),
        ([*STANDALONE, "--nproc-per-node=2"], "cannot be divided among 2 ranks"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, command, words):
    done = run(tmp_path, [*command, SRC / "18_cost.py", "--batch-size", 3])
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if "18_cost.py: error" in line]
    assert len(said) == 1, done.stderr
    assert words in said[0] or "a single rank has no partner" in said[0]
