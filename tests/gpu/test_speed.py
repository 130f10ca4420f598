"""Mixed precision, compile, MFU, data loading and wrong timers, on a GPU."""

import gc
import re
import statistics
import time
from dataclasses import asdict, dataclass

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.cost.formulas import Layout, Model, gpt_parameters, step_flops
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


def table_of_precisions(sizes, batch, found):
    of = f"{sizes.blocks} blocks of width {sizes.width}, batch {batch}"
    lines = [
        f"{of} x {sizes.context} tokens",
        "        ms/step   ratio   first loss   last loss",
    ]
    for way, one in found.items():
        ratio = found["fp32"]["ms"] / one["ms"]
        first, *_, last = one["losses"]
        lines.append(f"{way} {one['ms']:10.1f} {ratio:7.2f} {first:12.4f} {last:11.4f}")
    return lines


@pytest.mark.gpu
def test_precisions_learn_alike(gpu):
    sizes, batch = Sizes(width=1024, heads=16, blocks=8, context=512), 16
    found = precisions(gpu, sizes, batch, steps=20)
    table = table_of_precisions(sizes, batch, found)
    numbers = {"sizes": asdict(sizes), "batch": batch, "ways": found}
    write_numbers("precisions", numbers, table)
    assert_all_learn_alike(found)


def test_precisions_dry():
    found = precisions(CPU, TINY, batch=4, steps=4)
    assert_all_learn_alike(found)
    rows = [line.split() for line in table_of_precisions(TINY, 4, found)[2:]]
    assert [row[0] for row in rows] == list(WAYS)
    assert rows[0][2] == "1.00"


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
    """The largest power of 2, up to ``most``, of which some steps fit.

    The later ones find memory in the pieces that the first has left.
    """
    batch = fits = 1
    while batch <= most and have_room(step_of(batch)):
        fits = batch
        batch *= 2
    forget()
    return fits


def have_room(step):
    """Whether some steps fit into what is free."""
    forget()
    try:
        for _ in range(3):
            step()
    except torch.OutOfMemoryError:
        return False
    return True


def forget():
    """Give back the memory that nothing uses any more."""
    gc.collect()
    torch.cuda.empty_cache()  # which does nothing before CUDA has started


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


def table_of_mfu(sizes, found):
    model = Model(sizes.blocks, sizes.width, sizes.heads, sizes.context, BYTES)
    lines = {
        "parameters": f"{gpt_parameters(model) / 1e9:.1f} billion",
        "batch": f"{found.batch} x {sizes.context} tokens",
        "a step": f"{found.ms:,.0f} ms",
        "tokens/s": f"{found.tokens_per_s:,.0f}",
        "in use": f"{found.peak_bytes / 1e9:,.1f} GB at most",
        "reached": f"{found.flops / 1e12:,.0f} TFLOP/s",
        "its peak": f"{found.matmul / 1e12:,.0f} TFLOP/s, a product in bfloat16",
        "MFU": f"{found.mfu:.0%}",
    }
    return [f"{name:<12}{value}" for name, value in lines.items()]


@pytest.mark.gpu
def test_mfu_of_a_model_that_fills_the_card(gpu):
    found = utilization(gpu, GPT_1B, most=256, matmul_size=8192)
    numbers = {"sizes": asdict(GPT_1B), **asdict(found)}
    write_numbers("mfu", numbers, table_of_mfu(GPT_1B, found))
    assert 0 < found.mfu < 1
    total = torch.cuda.get_device_properties(gpu).total_memory
    assert found.peak_bytes > total / 4, "the batch could have been larger"


def test_mfu_dry():
    found = utilization(CPU, TINY, most=2, matmul_size=64)
    assert found.batch == 2 and found.mfu > 0
    table = table_of_mfu(TINY, found)
    assert table[1] == "batch       2 x 8 tokens"
    assert table[-1] == f"MFU         {found.mfu:.0%}"


@pytest.mark.full
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
    total += data[:1][0].to(device).double().sum()  # kernels are loaded lazily
    total.zero_()
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


def table_of_loading(found):
    lines = ["            256 MiB to the GPU   returns after"]
    for kind, one in found.items():
        copy = one["copy_256_mb"]
        done, returned = 1000 * copy["done_s"], 1000 * copy["returned_s"]
        lines.append(f"{kind:<9} {done:17.2f} ms {returned:12.2f} ms")
    return lines


@pytest.mark.gpu
def test_loading_from_pinned_memory_brings_the_same_numbers(gpu):
    found = {
        kind: {
            "loader": loading(gpu, rows=8192, width=4096, pinned=pinned),
            "copy_256_mb": copying(gpu, 256, pinned),
        }
        for kind, pinned in {"pageable": False, "pinned": True}.items()
    }
    write_numbers("loading", found, table_of_loading(found))
    assert found["pageable"]["loader"]["sum"] == found["pinned"]["loader"]["sum"]


def test_loading_dry():
    found = loading(CPU, rows=100, width=3, pinned=False)
    assert found["sum"] == sum(range(300)) and found["mb_per_s"] > 0
    times = copying(CPU, 1, pinned=False)
    assert 0 < times["returned_s"] <= times["done_s"]
    _, row = table_of_loading({"pageable": {"loader": found, "copy_256_mb": times}})
    assert re.fullmatch(r"pageable +[\d.]+ ms +[\d.]+ ms", row)


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


def table_of_timers(size, repeats, found):
    lines = [f"{repeats} products of two {size} x {size} matrices, by a clock"]
    return lines + [f"{way:<20} {1000 * s:8.1f} ms" for way, s in found.items()]


@pytest.mark.gpu
def test_timers_without_synchronize_see_only_the_launches(gpu):
    size, repeats = 8192, 20
    found = timers(gpu, size, repeats)
    write_numbers("timers", found, table_of_timers(size, repeats, found))
    assert found["without synchronize"] < found["with synchronize"]


def test_timers_dry():
    found = timers(CPU, size=32, repeats=2)
    assert all(seconds > 0 for seconds in found.values())
    table = table_of_timers(32, 2, {"with synchronize": 0.25})
    assert table[1] == "with synchronize        250.0 ms"
