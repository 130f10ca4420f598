"""What docs/lessons/06_checkpoints says about PyTorch, tried out.

Each test is named after its sentence on the page. What 06_checkpoint.py itself does
is tested in tests/scripts/test_06_*.py and by the transcripts; what the page says of
the file is in test_06_files_claims.py.
"""

import os
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.docs.pages import checked_page

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from common.data import WIDTH, make_model  # noqa: E402

rest_of_share = import_module("06_checkpoint").rest_of_share

# One process imports torch and forks the ranks before it computes anything.
RANKS = """
import os, sys, tempfile
import torch, torch._dynamo
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1)

def run(world_size, program):
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(world_size):
            child = os.fork()
            if child == 0:
                try:
                    store = dist.FileStore(folder + "/meet", world_size)
                    dist.init_process_group(
                        "gloo", store=store, rank=rank, world_size=world_size
                    )
                    program(rank, world_size)
                    dist.barrier()
                    sys.stdout.flush()
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
        assert statuses == [0] * world_size, statuses
"""


def ranks(code, limit=300):
    """What ``code``, which calls ``run(world_size, program)``, prints, by line."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RANKS + code],
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=limit,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


# Save what the next step depends on

on_the_page = checked_page("06_checkpoints")


def test_the_model_has_197770_parameters_and_a_random_state_has_5056_bytes():
    assert sum(p.numel() for p in make_model(width=WIDTH).parameters()) == 197_770
    assert torch.get_rng_state().numel() == 5056
    assert torch.get_rng_state().dtype == torch.uint8


def test_numpys_state_has_to_be_stored_as_a_list(tmp_path):
    numpy = pytest.importorskip("numpy")
    path, (name, keys, *rest) = tmp_path / "random.pt", numpy.random.get_state()
    torch.save({"numpy": (name, keys, *rest)}, path)
    with pytest.raises(UnpicklingError, match="Weights only load failed"):
        torch.load(path, weights_only=True)
    saved = {"numpy": (name, keys.tolist(), *rest), "python": random.getstate()}
    torch.save(saved, path)
    loaded = torch.load(path, weights_only=True)
    assert loaded == saved
    random.setstate(loaded["python"])
    before = numpy.random.random(), numpy.random.set_state(loaded["numpy"])
    assert numpy.random.random() == before[0]


@pytest.mark.nightly
def test_ddp_keys_begin_with_module_and_do_not_fit_a_plain_model():
    wrapped = {f"module.{key}": v for key, v in nn.Linear(2, 2).state_dict().items()}
    code = """
def program(rank, world_size):
    model = nn.Linear(2, 2)
    if rank == 0:
        print(list(DDP(model).state_dict()), list(DDP(model).module.state_dict()))
    else:
        DDP(model), DDP(model)
run(2, program)
"""
    assert ranks(code) == [f"{list(wrapped)} {['weight', 'bias']}"]
    with pytest.raises(RuntimeError) as error:
        make_model().load_state_dict({f"module.{k}": 0 for k in ("0.weight",)})
    assert 'Missing key(s) in state_dict: "0.weight"' in str(error.value)
    assert 'Unexpected key(s) in state_dict: "module.0.weight"' in str(error.value)


def test_strict_false_makes_keys_that_do_not_fit_no_error():
    model = nn.Linear(2, 2)
    before = model.weight.clone()
    model.load_state_dict({"module.weight": torch.zeros(2, 2)}, strict=False)
    assert torch.equal(model.weight, before)


def test_without_its_state_the_momentum_starts_from_zero():
    weight = nn.Parameter(torch.ones(1))
    new = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    assert new.state_dict()["state"] == {}


@pytest.mark.nightly
def test_a_barrier_inside_the_if_is_a_deadlock(tmp_path):
    looked = f"looked = {str(tmp_path / 'looked')!r}"
    code = """
import threading
def program(rank, world_size):
    store = dist.FileStore(looked, world_size)
    def meet():
        dist.barrier() if rank == 0 else dist.all_reduce(torch.ones(4))
    threading.Thread(target=meet, daemon=True).start()
    threading.Event().wait(1.5)
    waiting = threading.active_count() > 1
    print(f"rank {rank} waits: {waiting}", flush=True)
    store.set(str(rank), "")  # a rank that ends would wake the others up
    store.wait([str(number) for number in range(world_size)])
    os._exit(0)
run(3, program)
"""
    printed = ranks(f"{looked}\n{code}")
    assert sorted(printed) == [f"rank {rank} waits: True" for rank in range(3)]


@pytest.mark.nightly
def test_a_save_that_takes_longer_than_the_timeout_fails_the_ranks_that_wait():
    code = """
import time
from datetime import timedelta
def program(rank, world_size):
    group = dist.new_group(timeout=timedelta(seconds=1))
    if rank == 0:
        time.sleep(4)  # saves
    try:
        dist.barrier(group)
        print(f"rank {rank} goes on", flush=True)
    except RuntimeError as error:
        print(f"rank {rank}", "imed out" in str(error), flush=True)
    os._exit(0)
run(2, program)
"""
    assert "rank 1 True" in ranks(code)


def test_programs_that_save_keep_the_default_timeout():
    programs = [path.read_text("utf-8") for path in (ROOT / "src").rglob("0[5-9]_*.py")]
    saving = [text for text in programs if "snapshot.Run(" in text]
    assert len(saving) == 7
    assert not any("timeout" in text for text in saving)
    for name in ("15_fsdp.py", "16_fsdp_tensor_parallel.py", "20_capstone.py"):
        text = (ROOT / "src" / name).read_text("utf-8")
        assert "timeout=None" in text  # PyTorch's default
        assert text.count("timeout") == 1


# Begin in the middle of an epoch


def test_a_loader_draws_one_global_number_unless_it_has_a_generator():
    data = TensorDataset(torch.zeros(4))

    def state_after_loop(**options):
        torch.manual_seed(0)
        loader = DataLoader(data, sampler=[0, 1, 2, 3], **options)
        for _ in loader:
            pass
        return torch.get_rng_state()

    torch.manual_seed(0)
    untouched = torch.get_rng_state()
    assert not torch.equal(state_after_loop(), untouched)
    own = state_after_loop(generator=torch.Generator())
    assert torch.equal(own, untouched)


# Mind the last bit


def test_the_order_of_a_sum_changes_its_last_bit_and_a_plus_b_is_b_plus_a():
    a, b, c = torch.randn(3, 1000, generator=torch.Generator().manual_seed(0))
    assert not torch.equal((a + b) + c, a + (b + c))
    assert torch.equal(a + b, b + a)


@pytest.mark.nightly
def test_the_order_of_the_ranks_depends_on_the_place_in_the_tensor():
    code = """
def program(rank, world_size):
    mine = torch.randn(50, generator=torch.Generator().manual_seed(rank))
    everywhere = mine.repeat(999)  # each of the 50 numbers at 999 places
    dist.all_reduce(everywhere)
    sums = everywhere.view(999, 50)
    if rank == 0:
        print(world_size, int((sums != sums[0]).any(dim=0).sum()))
run(2, program)
run(3, program)
"""
    two, three = (line.split() for line in ranks(code))
    assert two == ["2", "0"], "two ranks: the same sums at every place"
    assert three[0] == "3" and int(three[1]) > 0


LAST_BIT = """
import copy
sys.path.insert(0, SRC)
from common.data import make_model
from common.distributed import settle_buckets

def train(model, optimizer, ddp, rank, steps):
    for step in steps:
        data = torch.Generator().manual_seed(1000 + step * 10 + rank)
        images = torch.randn(8, 1, 8, 8, generator=data)
        labels = torch.randint(10, (8,), generator=data)
        optimizer.zero_grad()
        F.cross_entropy(ddp(images), labels).backward()
        optimizer.step()

def build(state, settle, **options):
    torch.manual_seed(0)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    if state:
        model.load_state_dict(state[0])
        optimizer.load_state_dict(state[1])
    ddp = DDP(model, **options)
    if settle:
        settle_buckets(ddp, torch.zeros(1, 1, 8, 8))
    return model, optimizer, ddp

def program(rank, world_size):
    for name, settle, options in (
        ("plain", False, {}),
        ("settled", True, {}),
        ("unused", False, {"find_unused_parameters": True}),
    ):
        whole = build(None, settle, **options)
        train(*whole, rank, range(4))
        state = copy.deepcopy([whole[0].state_dict(), whole[1].state_dict()])
        train(*whole, rank, range(4, 9))
        resumed = build(state, settle, **options)
        train(*resumed, rank, range(4, 9))
        pairs = zip(whole[0].parameters(), resumed[0].parameters())
        apart = max((a - b).abs().max().item() for a, b in pairs)
        if rank == 0:
            print(world_size, name, apart == 0, apart < 1e-5)
run(2, program)
run(3, program)
"""


@pytest.mark.nightly
def test_a_resumed_ddp_run_is_bit_equal_on_three_ranks_only_with_settled_buckets():
    found = ranks(LAST_BIT.replace("SRC", repr(str(ROOT / "src"))))
    assert found == [
        "2 plain True True",
        "2 settled True True",
        "2 unused True True",
        "3 plain False True",
        "3 settled True True",
        "3 unused True True",
    ]


# Go on with another number of ranks


def test_the_images_to_come_are_the_same_on_another_number_of_ranks():
    def share(rank, world_size, done):
        return rest_of_share(41, 3, done, rank, world_size)

    done = 4 * 3 * 2  # four steps of three ranks with two images each
    used = [i for rank in range(3) for i in share(rank, 3, 0)[: 4 * 2]]
    for world_size in (1, 2, 3, 4):
        to_come = [share(rank, world_size, done) for rank in range(world_size)]
        assert len({len(part) for part in to_come}) == 1
        dealt = [i for part in to_come for i in part]
        assert set(dealt) | set(used) == set(range(41))
        again = len(dealt) - (41 - done)
        assert 0 <= again < world_size, "only the padding repeats images"


def test_table_of_the_rest_is_what_the_program_deals_out():
    order = rest_of_share(12, 0, 0, 0, 1)

    def shown(places):
        return ", ".join(str(order.index(place)) for place in places)

    for rank, row in enumerate(["0, 2, 4 - 6, 9", "1, 3, 5 - 7, 10", "- 8, 11"]):
        rest = shown(rest_of_share(12, 0, 6, rank, 3))
        before = shown(rest_of_share(12, 0, 0, rank, 2)[:3]) if rank < 2 else ""
        assert row == f"{before} - {rest}".strip()
        on_the_page(row)


def test_a_next_epoch_has_the_same_order_on_any_number_of_ranks():
    def order(world_size):
        shares = [rest_of_share(24, 5, 0, r, world_size) for r in range(world_size)]
        return [share[i] for i in range(len(shares[0])) for share in shares]

    assert order(1) == order(2) == order(3)


def test_an_order_takes_8_bytes_a_sample_and_a_list_four_to_five_times_as_much():
    size = 10**6
    order = torch.randperm(size)
    assert order.nbytes == 8 * size
    listed = order.tolist()
    # the smallest numbers are shared by the whole process
    held = sys.getsizeof(listed) + sum(map(sys.getsizeof, listed))
    assert 4 <= held / order.nbytes <= 5


@pytest.mark.parametrize("length", [1, 2, 3, 7, 16, 17, 1000])
def test_feistel_network_leads_each_position_to_another_sample(length):
    for starter in ("train_ddp", "train_fsdp"):
        shuffled = import_module(f"starter.{starter}").shuffled
        orders = [
            [shuffled(position, length, key) for position in range(length)]
            for key in range(3)
        ]
        assert all(sorted(order) == list(range(length)) for order in orders)
        assert length < 7 or orders[0] != orders[1] != orders[2]
