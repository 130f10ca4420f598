"""What the remedies of lesson 17 change; test_17_remedies_claims.py runs it."""

import re
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.utils.flop_counter import FlopCounterMode

from workshop.grader import expect

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))
from common.cost.measure import Traffic  # noqa: E402

EXAMPLES = ROOT / "docs" / "examples"
SLOW = (EXAMPLES / "17_slow.py").read_text(encoding="utf-8")
CPU = torch.device("cpu")
PLAIN = (28, 8.05, 2.87)  # calls, MB sent and GFLOP in a step
CHANGED = {
    "no-sync": (7, 2.01, 2.87),
    "one-bucket": (4, 8.05, 2.87),
    "fp16-hook": (28, 4.02, 2.87),
    "bf16-hook": (28, 4.02, 2.87),
    "checkpoint": (28, 8.05, 3.47),
}


def remedies():
    """Name -> its hunks, each a list of lines that begin with a space, a - or a +."""
    text = (EXAMPLES / "17_remedies.diff").read_text(encoding="utf-8")
    found = re.findall(r"^# (.+)\n((?:[^#\n].*\n)+)", text, re.M)
    return {
        name: [hunk.splitlines() for hunk in body.split("...\n")]
        for name, body in found
    }


def applied(hunks):
    """The slow run with these changes."""
    text = SLOW
    for hunk in hunks:
        old, new = (
            "".join(line[1:] + "\n" for line in hunk if line[0] in signs)
            for signs in (" -", " +")
        )
        assert text.count(old) == 1, f"not once in 17_slow.py:\n{old}"
        text = text.replace(old, new)
    return text


def third_step(train):
    """Calls, MB sent and GFLOP of the third step, and the loss after it."""
    begun, zero_grad = [], torch.optim.AdamW.zero_grad
    operations = FlopCounterMode(display=False)

    def counted():
        sent, flops = traffic.wire_bytes() / 1e6, operations.get_total_flops() / 1e9
        return len(traffic.calls), sent, flops

    def begin_step(optimizer):
        begun.append(counted())
        zero_grad(optimizer)

    with Traffic() as traffic, operations, pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "zero_grad", begin_step)
        loss = train(3, CPU)  # by then, DDP has laid out its buckets
    assert len(begun) == 3
    return tuple(
        round(b - a, 2) for a, b in zip(begun[2], counted(), strict=True)
    ), loss


@pytest.mark.ranks(2)
def test_loss_is_that_of_the_step_not_of_a_micro_batch(rank):
    scope = {"__name__": "slow"}
    exec(compile(SLOW, "17_slow.py", "exec"), scope)
    pieces, untrained = scope["SlowPieces"](64), scope["build"](CPU)
    sampler = scope["DistributedSampler"](pieces)
    tokens = torch.stack([pieces[index] for index in list(sampler)[:16]])
    with torch.no_grad():
        loss = scope["next_byte_loss"](untrained(tokens[:, :-1]), tokens[:, 1:])
    expect.close(scope["train"](1, CPU), loss, "the loss of the first step")
    del untrained
    dist.barrier()


@pytest.mark.ranks(2, limit=120)
def test_remedies_change_what_the_page_says(rank):
    plain = None
    for name, hunks in {"nothing": [], **remedies()}.items():
        if name in ("compile", "for a GPU", "powersgd"):
            continue  # the ledger of these ranks misses what gloo's threads call
        scope = {"__name__": "slow"}
        exec(compile(applied(hunks), name, "exec"), scope)
        counted, loss = third_step(scope["train"])
        plain = loss if plain is None else plain
        expect.equal(counted, CHANGED.get(name, PLAIN), name)
        expect.that(abs(loss - plain) < 0.02, f"{name}: loss {loss}, not {plain}")
        del scope
        dist.barrier()
