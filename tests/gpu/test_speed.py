"""Mixed precision, compile, MFU, data loading and wrong timers, on a GPU.

Never run on a GPU by us yet.
"""

import statistics
import time
from dataclasses import asdict, dataclass

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.cost.formulas import Layout, Model, step_flops
from tests.gpu.results import write_numbers

TINY = Sizes(width=16, heads=2, blocks=1, context=8)
GPT_1B = Sizes(width=2048, heads=16, blocks=24, context=1024)  # 1.2e9 parameters
CPU = torch.device("cpu")


def synchronize(device):
    """Wait for all that was launched; the CPU has done it already."""
    if device.type != "cpu":
        torch.accelerator.synchronize()


def seconds_of(action, device, repeats):
    """The median seconds of an action, without its first two runs."""
    found = []
    for _ in range(repeats + 2):
        synchronize(device)
        start = time.perf_counter()
        action()
        synchronize(device)
        found.append(time.perf_counter() - start)
    return statistics.median(found[2:])


def gpt_on(device, sizes):
    """The same model in every call, built on its device."""
    torch.manual_seed(0)
    with torch.device(device):
        return ByteGPT(sizes)


def tokens_for(device, sizes, batch):
    generator = torch.Generator().manual_seed(1)
    shape = batch, sizes.context + 1
    return torch.randint(BYTES, shape, generator=generator).to(device)


def make_step(model, optimizer, tokens, low=None, scaler=None):
    """A training step; ``low``: the type of autocast, None for float32."""
    scaler = scaler or torch.amp.GradScaler(tokens.device.type, enabled=False)
    kind = tokens.device.type

    def step():
        optimizer.zero_grad()
        with torch.autocast(kind, low or torch.bfloat16, enabled=low is not None):
            scores = model(tokens[:, :-1])
        loss = next_byte_loss(scores.float(), tokens[:, 1:])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step


# Mixed precision

WAYS = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def precisions(device, sizes, batch, steps):
    """Way -> losses of all steps and milliseconds of a step, from the same model."""
    found = {}
    tokens = tokens_for(device, sizes, batch)
    for way, low in WAYS.items():
        model = gpt_on(device, sizes)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        scaler = torch.amp.GradScaler(device.type, enabled=way == "fp16")
        step = make_step(model, optimizer, tokens, low, scaler)
        losses = [step().item() for _ in range(steps)]
        ms = 1000 * seconds_of(step, device, repeats=3)
        found[way] = {"losses": losses, "ms": ms, "scale": scaler.get_scale()}
    return found


def assert_all_learn_alike(found):
    exact = found["fp32"]["losses"]
    for way, one in found.items():
        assert one["losses"][-1] < one["losses"][0], way
        assert one["losses"][0] == pytest.approx(exact[0], rel=0.02), way


@pytest.mark.gpu
def test_both_16_bit_types_learn_as_32_bits_do(gpu):
    sizes = Sizes(width=1024, heads=16, blocks=8, context=512)
    found = precisions(gpu, sizes, batch=16, steps=20)
    write_numbers("precisions", {"sizes": asdict(sizes), "batch": 16, "ways": found})
    assert_all_learn_alike(found)


def test_precisions_dry():
    assert_all_learn_alike(precisions(CPU, TINY, batch=4, steps=4))


# Compile


def compiled(device, sizes, batch, backend):
    """Loss and milliseconds of a step, eager and with every block compiled."""
    found = {}
    tokens = tokens_for(device, sizes, batch)
    for way in ("eager", "compiled"):
        model = gpt_on(device, sizes)
        if way == "compiled":
            for block in model.blocks:
                block.compile(backend=backend)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        step = make_step(model, optimizer, tokens, torch.bfloat16)
        begin = time.perf_counter()
        loss = step().item()
        first = time.perf_counter() - begin
        ms = 1000 * seconds_of(step, device, repeats=5)
        found[way] = {"loss": loss, "first_step_s": first, "ms": ms}
    return found


@pytest.mark.gpu
def test_compiled_blocks_compute_the_same(gpu):
    sizes = Sizes(width=1024, heads=16, blocks=4, context=512)
    found = compiled(gpu, sizes, batch=16, backend="inductor")
    write_numbers("compile", {"sizes": asdict(sizes), "batch": 16, "ways": found})
    losses = [one["loss"] for one in found.values()]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


def test_compile_dry():
    """Without the code that the compiler would write: that takes half a minute."""
    found = compiled(CPU, TINY, batch=2, backend="eager")
    losses = [one["loss"] for one in found.values()]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


# MFU


@dataclass
class Largest:
    """The largest batch that a card holds, and how fast it trains with it."""

    batch: int
    ms: float
    tokens_per_s: float
    peak_bytes: int
    flops: float  # per second, by the formula
    matmul: float  # FLOP/s of the best product of two large matrices
    mfu: float


def matmul_rate(device, size):
    """FLOP/s of a product of two random [size, size] matrices in bfloat16."""
    a, b = torch.randn(2, size, size, device=device, dtype=torch.bfloat16)
    return 2 * size**3 / seconds_of(lambda: a @ b, device, repeats=10)


def largest_batch(step_of, most):
    """The largest power of 2, up to ``most``, for which ``step_of(batch)()`` fits."""
    batch = fits = 1
    while batch <= most:
        try:
            step_of(batch)()
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            break
        fits = batch
        batch *= 2
    return fits


def utilization(device, sizes, most, matmul_size):
    """Train the byte GPT with the largest batch that fits, and compare with the card.

    FLOP of a step as in `common.cost.formulas`: nothing is counted for recomputing.
    """
    model = gpt_on(device, sizes)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def step_of(batch):
        tokens = tokens_for(device, sizes, batch)
        return make_step(model, optimizer, tokens, torch.bfloat16)

    batch = largest_batch(step_of, most)
    seconds = seconds_of(step_of(batch), device, repeats=5)
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    shape = sizes.blocks, sizes.width, sizes.heads, sizes.context, BYTES
    flops = step_flops(Model(*shape), Layout(micro_batch=batch)) / seconds
    optimizer.zero_grad()
    matmul = matmul_rate(device, matmul_size)
    rate = batch * sizes.context / seconds
    return Largest(batch, 1000 * seconds, rate, peak, flops, matmul, flops / matmul)


@pytest.mark.gpu
def test_mfu_of_a_model_that_fills_the_card(gpu):
    found = utilization(gpu, GPT_1B, most=256, matmul_size=8192)
    write_numbers("mfu", {"sizes": asdict(GPT_1B), **asdict(found)})
    assert 0 < found.mfu < 1
    total = torch.cuda.get_device_properties(gpu).total_memory
    assert found.peak_bytes > total / 4, "the batch could have been larger"


def test_mfu_dry():
    found = utilization(CPU, TINY, most=2, matmul_size=64)
    assert found.batch == 2 and found.mfu > 0


def test_largest_batch_stops_where_memory_ends():
    def step_of(batch):
        def step():
            if batch > 4:
                raise torch.OutOfMemoryError

        return step

    assert largest_batch(step_of, most=64) == 4
    assert largest_batch(step_of, most=2) == 2


# Data loading


def loading(device, rows, width, pinned):
    """Megabytes per second that a loader's batches reach the device with, and a sum."""
    data = TensorDataset(torch.arange(rows * width).view(rows, width).float())
    loader = DataLoader(data, batch_size=64, num_workers=0, pin_memory=pinned)
    total = torch.zeros((), device=device, dtype=torch.float64)
    synchronize(device)
    start = time.perf_counter()
    for (batch,) in loader:
        total += batch.to(device, non_blocking=True).double().sum()
    synchronize(device)
    seconds = time.perf_counter() - start
    return {"mb_per_s": rows * width * 4 / seconds / 1e6, "sum": total.item()}


def copying(device, megabytes, pinned):
    """Seconds of a copy to the device: until it returns, and until it is done."""
    source = torch.ones(megabytes * 2**18, pin_memory=pinned)
    source.to(device)  # the first one pays for what starts lazily
    synchronize(device)
    start = time.perf_counter()
    source.to(device, non_blocking=True)
    returned = time.perf_counter() - start
    synchronize(device)
    return {"returned_s": returned, "done_s": time.perf_counter() - start}


@pytest.mark.gpu
def test_pinned_memory_brings_the_same_numbers(gpu):
    found = {
        kind: {
            "loader": loading(gpu, rows=8192, width=4096, pinned=pinned),
            "copy_256_mb": copying(gpu, 256, pinned),
        }
        for kind, pinned in {"pageable": False, "pinned": True}.items()
    }
    write_numbers("loading", found)
    assert found["pageable"]["loader"]["sum"] == found["pinned"]["loader"]["sum"]


def test_loading_dry():
    found = loading(CPU, rows=100, width=3, pinned=False)
    assert found["sum"] == sum(range(300)) and found["mb_per_s"] > 0
    times = copying(CPU, 1, pinned=False)
    assert 0 < times["returned_s"] <= times["done_s"]


# Wrong timers


def timers(device, size, repeats):
    """Seconds of matrix products by a clock that waits for the device, or doesn't."""
    a = torch.ones(size, size, device=device)
    product = nn.Linear(size, size, device=device)
    found = {}
    for way in ("warm up", "without synchronize", "with synchronize"):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(repeats):
            product(a)
        if way != "without synchronize":
            synchronize(device)
        found[way] = time.perf_counter() - start
    del found["warm up"]
    return found


@pytest.mark.gpu
def test_clock_without_synchronize_sees_only_the_launches(gpu):
    found = timers(gpu, size=8192, repeats=20)
    write_numbers("timers", found)
    assert found["without synchronize"] < found["with synchronize"]


def test_timers_dry():
    assert all(seconds > 0 for seconds in timers(CPU, size=32, repeats=2).values())
