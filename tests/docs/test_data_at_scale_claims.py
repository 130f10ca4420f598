"""What docs/production/data_at_scale.rst says, tried out.

What the programs do is tested in tests/scripts/test_06_token_stream.py.
"""

import importlib.util
import os
import pickle
import statistics
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import (
    DataLoader,
    DistributedSampler,
    IterableDataset,
    get_worker_info,
)

from tests.docs.pages import ROOT

pytestmark = pytest.mark.full

PAGE = " ".join((ROOT / "docs/production/data_at_scale.rst").read_text("utf-8").split())
EXAMPLES = ROOT / "docs" / "examples"
sys.path.insert(0, str(ROOT / "src"))
token_stream = import_module("06_token_stream")


def on_the_page(*sentences):
    for sentence in sentences:
        assert sentence in PAGE, f"the page no longer says {sentence!r}"


class Records(IterableDataset):
    """Six records, or what ``function`` makes of a copy of this dataset."""

    def __init__(self, function=None):
        self.function = function

    def __iter__(self):
        yield from range(6) if self.function is None else self.function()


def read(dataset, workers, **options):
    return list(DataLoader(dataset, batch_size=None, num_workers=workers, **options))


# The first paragraph


def test_list_of_a_billion_indices_takes_36_bytes_for_each():
    """A pointer in the list, and the number itself."""
    on_the_page("36 bytes for each of them", "that's 36 GB per rank")
    pointer = (sys.getsizeof([None] * 1000) - sys.getsizeof([])) / 1000
    assert pointer + sys.getsizeof(1_000_000_000 - 1) == 36


def test_every_rank_shuffles_a_list_of_all_indices(monkeypatch):
    on_the_page("shuffles a list of all indices, on every rank")
    lengths = []
    real = torch.randperm
    monkeypatch.setattr(
        torch, "randperm", lambda n, **k: lengths.append(n) or real(n, **k)
    )
    assert len(list(DistributedSampler(range(12), 4, 1))) == 3
    assert lengths == [12]


# See every worker read everything


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_each_worker_yields_all_records_of_a_stream_that_does_not_ask(workers):
    assert read(Records(), workers) == [r for r in range(6) for _ in range(workers)]
    assert read(Records(), 0) == list(range(6))


def test_with_two_ranks_on_two_nodes_and_two_workers_each_is_read_eight_times():
    on_the_page("every sample is read eight times")
    ranks = [read(Records(), 2) for _ in range(4)]
    assert sum(records.count(3) for records in ranks) == 8


def test_worker_info_is_none_without_workers():
    on_the_page("it's ``None`` without workers")
    assert get_worker_info() is None
    assert read(Records(lambda: [get_worker_info() is None]), 0) == [True]
    ids = read(Records(lambda: [get_worker_info().id]), 3)
    assert ids == [0, 1, 2]


SPAWNED = """
import sys
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset

class Joined(IterableDataset):
    def __iter__(self):
        yield dist.is_initialized()

if __name__ == "__main__":
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    how = dict(num_workers=1, multiprocessing_context=sys.argv[1])
    print(list(DataLoader(Joined(), batch_size=None, **how)))
    dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("how", "found"), [("fork", True), ("spawn", False), ("forkserver", False)]
)
def test_only_a_forked_worker_has_the_process_group(tmp_path, how, found):
    on_the_page("has no process group, so ``dist.get_rank()`` fails there")
    (tmp_path / "joined.py").write_text(SPAWNED)
    command = [sys.executable, "joined.py", how]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"[{found}]\n", done.stderr


# Write token files


def test_two_bytes_hold_65536_tokens_and_ten_billion_take_20_gb():
    on_the_page("up to 65,536 tokens, and 10 billion tokens take 20 GB")
    assert np.iinfo(token_stream.TOKEN).max + 1 == 65_536
    assert token_stream.TOKEN.itemsize * 10e9 == 20e9


def test_pages_have_4_kb_on_this_kind_of_machine():
    if os.uname().machine != "x86_64":
        pytest.skip("other processors have other pages")
    on_the_page("the pages of 4 kB")
    assert os.sysconf("SC_PAGE_SIZE") == 4096


def resident(path):
    """Bytes of a file that this process has in its memory."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0] and not line.startswith("Vm"):
            inside = line.endswith(str(path))
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_mapping_a_file_reads_nothing_and_indexing_only_some_pages(tmp_path):
    on_the_page("Opening it reads nothing")
    path = tmp_path / "a.tokens"
    np.zeros(10_000_000, dtype=token_stream.TOKEN).tofile(path)
    mapped = np.memmap(path, dtype=token_stream.TOKEN, mode="r")
    assert resident(path) == 0
    assert mapped[5_000_000:5_001_024].sum() == 0
    assert 0 < resident(path) < 1_000_000  # the system also maps some neighbors


def test_pickled_memmap_contains_the_whole_file(tmp_path):
    on_the_page("a pickled memmap contains the whole file")
    path = tmp_path / "a.tokens"
    np.zeros(100_000, dtype=token_stream.TOKEN).tofile(path)
    mapped = np.memmap(path, dtype=token_stream.TOKEN, mode="r")
    assert len(pickle.dumps(mapped)) >= mapped.nbytes
    files = object.__new__(token_stream.TokenFiles)
    files.mapped = {}
    assert len(pickle.dumps(files)) < 1000


def test_cross_entropy_ignores_targets_of_minus_100():
    scores = torch.randn(4, 5, dtype=torch.float64)
    targets = torch.tensor([1, token_stream.IGNORED, 3, token_stream.IGNORED])
    whole = F.cross_entropy(scores, targets)
    assert torch.equal(whole, F.cross_entropy(scores[::2], targets[::2]))


# Pack documents


def test_shares_in_the_text_are_those_of_the_transcript():
    on_the_page("wastes a third of the computation *and* loses three quarters")
    on_the_page("about one token in a thousand is padding")
    text = (ROOT / "docs/transcripts/data_at_scale_write.txt").read_text("utf-8")
    (row,) = [line for line in text.splitlines() if line.strip().startswith("1,024")]
    padding, cut, packed, _ = (float(word.strip("%")) for word in row.split()[1:])
    assert abs(padding - 33) < 2 and abs(cut - 75) < 3 and packed == 0.1


# Shuffle


def test_hash_of_a_string_differs_from_process_to_process_and_random_does_not():
    code = "import random; print(hash('a'), random.Random('a').random())"
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(number)},
            capture_output=True,
            text=True,
        ).stdout.split()
        for number in (1, 2)
    ]
    assert found[0][0] != found[1][0] and found[0][1] == found[1][1]


def test_a_window_is_at_most_511_turns_early_with_a_buffer_of_512():
    on_the_page("its 100th window, it has read 611 of them", "more than 511 turns")
    generator = token_stream.random.Random(0)
    taken = []
    items = (taken.append(n) or n for n in range(4410))
    early = 0
    for turn, item in enumerate(token_stream.shuffled(items, 512, generator)):
        early = max(early, item - turn)
        if turn == 99:
            # the buffer replaces what it gave out when the next one is asked for
            assert len(taken) in (611, 612)
    assert early == 511


@pytest.mark.parametrize(
    ("size", "first", "mean"),
    [
        (1, 1, "1.2"),
        (64, 1, "1.8"),
        (512, 2, "5.0"),
        (2048, 5, "8.0"),
        (4410, 9, "9.0"),
    ],
)
def test_shards_that_a_buffer_mixes(size, first, mean):
    name = f"{size:,} (all)" if size == 4410 else f"{size:,}"
    on_the_page(f"* - {name} - {first} - {mean}")
    files = SimpleNamespace(
        shards=range(9), windows_of=lambda shard: range(490 * shard, 490 * shard + 490)
    )
    order = [w // 490 for w in token_stream.order_of_epoch(files, size, 0)]
    assert len(set(order[:100])) == first
    hundreds = range(0, len(order) - 100, 100)
    mixed = statistics.mean(len(set(order[i : i + 100])) for i in hundreds)
    assert f"{mixed:.1f}" == mean


# Divide steps


class Turns(IterableDataset):
    """What worker each item is from; worker 0 has fewer items than the others."""

    def __iter__(self):
        worker = get_worker_info().id
        for _ in range(2 if worker == 0 else 3):
            yield worker


def test_loader_takes_items_from_its_workers_in_turn():
    assert read(Turns(), 3) == [0, 1, 2, 0, 1, 2, 1, 2]


def test_strided_workers_give_ranks_unequal_totals():
    """Stream number rank x 2 + worker takes every eighth window; 4 ranks."""
    on_the_page("and the ranks' totals differ")
    streams = [len(range(stream, 20, 8)) for stream in range(8)]
    totals = [sum(streams[2 * rank : 2 * rank + 2]) for rank in range(4)]
    assert totals == [6, 6, 4, 4]


def test_mean_loss_of_no_samples_is_nan():
    on_the_page("the mean loss of no samples is ``nan``")
    empty = torch.empty(0, 5), torch.empty(0, dtype=torch.int64)
    assert F.cross_entropy(*empty).isnan()


# Resume


def test_each_worker_prepares_two_batches_by_default():
    on_the_page("each prepares two ahead by default")
    assert DataLoader(Records(), num_workers=2).prefetch_factor == 2


# torchdata, if it is installed


@pytest.fixture
def stateful():
    reason = "the workshop doesn't depend on torchdata: pip install torchdata"
    if importlib.util.find_spec("torchdata") is None:
        pytest.skip(reason)


def test_example_of_torchdata_continues_with_the_sixth_record(stateful):
    on_the_page("the first loader gives records 0 to 4, and the second one 5 to 11")
    command = [sys.executable, "-W", "ignore", EXAMPLES / "06_stateful_loader.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "before: [0, 1, 2, 3, 4]",
        "after:  [5, 6, 7, 8, 9, 10, 11]",
    ]


# A loader of torchdata that isn't read to its end can keep Python from ending: so
# each of these runs in a process of its own, which ends without asking its workers
STATEFUL = """
import os, sys
from torch.utils.data import IterableDataset
from torchdata.stateful_dataloader import StatefulDataLoader

class Records(IterableDataset):
    def __iter__(self):
        for record in range(8):
            with open(sys.argv[1], "a") as file:
                file.write(f"{record} ")
            yield record

first = StatefulDataLoader(Records(), batch_size=None, num_workers=2)
reading = iter(first)
before = [next(reading) for _ in range(6)]
state = first.state_dict()
open(sys.argv[1], "w").close()
other = StatefulDataLoader(
    Records(), batch_size=None, num_workers=int(sys.argv[2])
)
other.load_state_dict(state)
try:
    print(before, list(other), open(sys.argv[1]).read().count("0"), flush=True)
except AssertionError as error:
    print(repr(error), flush=True)
os._exit(0)
"""


def resumed(folder, workers):
    (folder / "program.py").write_text(STATEFUL)
    command = [sys.executable, "program.py", "read.txt", str(workers)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=200
    )


def test_without_state_dict_everything_is_read_again(stateful, tmp_path):
    on_the_page("it reads everything again up to the position, and warns")
    done = resumed(tmp_path, 2)
    assert done.stdout == ("[0, 0, 1, 1, 2, 2] [3, 3, 4, 4, 5, 5, 6, 6, 7, 7] 2\n"), (
        done.stderr
    )
    assert "naively fast-forwarding your dataset" in done.stderr


def test_another_number_of_workers_is_an_assertion_error_without_words(
    stateful, tmp_path
):
    on_the_page("it raises an ``AssertionError`` without a message")
    done = resumed(tmp_path, 3)
    assert done.stdout == "AssertionError()\n", done.stderr
