"""What docs/lessons/08_many_nodes says of many nodes, tried out.

The four ways in which nodes do not connect: tests/jobs/test_never_meet.py. That rank 0
alone writes, and the order of the ranks: tests/scripts/test_08_multinode_spawn.py.
"""

import inspect
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.distributed.elastic.rendezvous import (
    c10d_rendezvous_backend,
    dynamic_rendezvous,
)

from tests.docs.pages import checked_page, lesson_source
from tests.launched import free_port, run

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from common import distributed  # noqa: E402
from common.data import make_model  # noqa: E402
from common.distributed import BadInput  # noqa: E402

multinode_spawn = import_module("08_multinode_spawn")

RECORDED = ROOT / "docs" / "transcripts"
PAGE = lesson_source("08_many_nodes")
on_the_page = checked_page("08_many_nodes")
WHO = """
import os
print(*(os.environ[name] for name in ("RANK", "GROUP_RANK", "MASTER_ADDR")))
"""


def side_by_side(*calls) -> list:
    """What the calls return; each begins a second after the one before."""

    def one(number: int):
        time.sleep(number)
        return calls[number]()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, range(len(calls))))


def right_answers() -> list[int]:
    """Of 359 images, in each of the four runs."""
    text = (RECORDED / "08_batch.txt").read_text(encoding="utf-8")
    return [int(found) for found in re.findall(r"\((\d+) of 359\)", text)]


def milliseconds() -> list[list[float]]:
    """[plain, rate, delay], each with the tiny and the large all-reduce."""
    text = (RECORDED / "08_slow_network.txt").read_text(encoding="utf-8")
    times = [float(found) for found in re.findall(r"([\d.]+) ms", text)]
    return [times[i : i + 2] for i in (0, 2, 4)]


def test_recorded_batches_show_what_the_page_says():
    """The second ends where the first did; the third learns less than the fourth."""
    one, same_global, same_local, scaled = right_answers()
    assert abs(one - same_global) < 2
    assert same_local < one - 7
    assert same_local < scaled < one
    regained, lost = scaled - same_local, one - same_local
    on_the_page(f"It regains {regained} of the {lost} images that the third run lost")


def test_recorded_network_shows_what_the_page_says():
    """Either fault slows the large tensor alike; only a delay slows the tiny one."""
    plain, rate, delay = milliseconds()
    assert rate[1] > 2 * plain[1], "record 08_slow_network on a machine with less to do"
    assert delay[0] > 5 * plain[0]
    tiny, large = (late / early for late, early in zip(delay, plain, strict=True))
    assert tiny > 3 * large
    on_the_page(f"makes it {tiny:.0f} times as slow")
    by_rate = rate[1] / plain[1]
    assert round(large) == round(by_rate) and rate[0] < 2 * plain[0]
    on_the_page(f"The large tensor takes about {large:.0f} times as long with either")
    # what no machine can beat: 16 MiB at 1 Gbit/s, and one way of 1 ms
    assert rate[1] > 16 * 2**20 * 8 / 1e9 * 1000
    assert delay[0] > 1


@pytest.mark.parametrize(
    "name, file",
    [
        ("def is_rank_0()", "common/distributed.py"),
        ("read_for_all(config.snapshot)", "common/snapshot.py"),
        ("process_group.join(local_rank,", "08_multinode_spawn.py"),
    ],
)
def test_places_that_deserve_a_second_look_are_there(name, file):
    assert name in (ROOT / "src" / file).read_text(encoding="utf-8")


def test_agents_wait_for_ten_minutes_and_for_the_store_one():
    on_the_page("wait for ``join_timeout``, 600 seconds by default")
    on_the_page("gives up after ``read_timeout``, 60 seconds by default")
    assert dynamic_rendezvous.RendezvousTimeout().join.total_seconds() == 600
    source = inspect.getsource(c10d_rendezvous_backend._create_tcp_store)
    assert 'get_as_int("read_timeout", 60)' in source
    assert "timeout=timedelta(seconds=read_timeout)" in source


# Number the ranks of all nodes


def on_two_devices(monkeypatch) -> None:
    """A node with two GPUs."""
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    cuda = torch.device("cuda")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: cuda)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "set_device_index", lambda index: None)


def test_rank_2_takes_device_0_of_its_node(monkeypatch):
    """It "is the first rank on its node"; there is "no device number 2"."""
    on_two_devices(monkeypatch)
    rank = multinode_spawn.rank_of(local_rank=0, node_rank=1, nprocs=2)
    assert rank == 2
    assert distributed.choose_device(0) == torch.device("cuda", 0)
    symptom = "local rank 2 has no cuda device"
    assert symptom in PAGE
    with pytest.raises(BadInput, match=symptom):
        distributed.choose_device(rank)


def test_counting_nodes_from_1_is_refused_in_these_words(monkeypatch):
    set_here = {"NODE_RANK": "2", "NNODES": "2"}
    for name, value in {**set_here, "MASTER_ADDR": "n1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    symptom = "NODE_RANK=2 must be smaller than NNODES=2"
    assert symptom in PAGE
    with pytest.raises(BadInput, match=symptom):
        multinode_spawn.read_node()


def test_as_many_snapshots_as_nodes_if_local_rank_0_saves(tmp_path):
    """The script with this one mistake; a folder for each node."""
    source = (ROOT / "src" / "08_multinode_spawn.py").read_text(encoding="utf-8")
    line = "    node_rank, nodes = read_node()\n"
    assert source.count(line) == 1
    mistake = "    snapshot.is_rank_0 = lambda: local_rank == 0\n"
    wrong = tmp_path / "wrong.py"
    wrong.write_text(source.replace(line, line + mistake))
    shared = {
        "NNODES": "2",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(free_port()),
        "PYTHONPATH": str(ROOT / "src"),
    }

    def node(rank: int):
        folder = tmp_path / f"node{rank}"
        folder.mkdir()
        command = [sys.executable, wrong, 1, 1, "--nprocs", 1]
        return run(folder, command, NODE_RANK=str(rank), **shared)

    done = side_by_side(lambda: node(0), lambda: node(1))
    assert [process.returncode for process in done] == [0, 0], done
    assert len(list(tmp_path.glob("node?/wrong.pt"))) == 2


# Let torchrun number them


def agents(folder: Path, *names: str, options: list[str]) -> dict[str, list[str]]:
    """What the one rank of each agent says, [rank, node rank, master]."""
    script = folder / "who.py"
    script.write_text(WHO)
    start = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", *options]

    def agent(name: str):
        words = ["--nproc-per-node=1", *name.split(), script]
        done = run(folder, [*start, *words], PYTHONWARNINGS="ignore")
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    calls = [lambda name=name: agent(name) for name in names]
    return dict(zip(names, side_by_side(*calls), strict=True))


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.*")
def test_c10d_numbers_the_nodes_by_their_names_as_text(tmp_path):
    """127.0.0.10 is before 127.0.0.9, though that comes first and opens the store.

    --local-addr gives the agents "a name that other ranks can use".
    """
    meeting = ["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}"]
    nine, ten = "--local-addr=127.0.0.9", "--local-addr=127.0.0.10"
    found = agents(tmp_path, nine, ten, options=[*meeting, "--rdzv-id=1"])
    assert found[ten] == ["0", "0", "127.0.0.10"]
    assert found[nine] == ["1", "1", "127.0.0.10"]


@pytest.mark.nightly
def test_static_nodes_are_numbered_as_told(tmp_path):
    """Whoever comes first, and whatever the names are."""
    meeting = ["--rdzv-backend=static", f"--rdzv-endpoint=localhost:{free_port()}"]
    second, first = (
        "--node-rank=1 --local-addr=127.0.0.1",
        "--node-rank=0 --local-addr=localhost",
    )
    found = agents(tmp_path, second, first, options=meeting)
    assert found[first][:2] == ["0", "0"]
    assert found[second][:2] == ["1", "1"]


def test_recorded_nodes_print_and_save_once():
    """One `Snapshot`, one accuracy, "although two processes have local rank 0"."""
    text = (RECORDED / "08_nodes.txt").read_text(encoding="utf-8")
    first = set(re.findall(r"local 0 rank (\d)\]", text))
    assert first == {"0", "2"}
    assert set(re.findall(r"\[node (\d) ", text)) == {"0", "1"}
    assert len(re.findall("^Snapshot of", text, re.M)) == 1
    assert len(re.findall("^Test accuracy", text, re.M)) == 1


# Choose the batch, then the learning rate


def gradients(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Of the mean loss of a batch, for the same weights each time."""
    torch.manual_seed(0)
    model = make_model(0.0).double()
    F.cross_entropy(model(images), labels).backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


@pytest.mark.parametrize("images", [32, 30])
def test_mean_over_ranks_is_the_global_batch_if_it_divides(images):
    """4 ranks: 8 images for each; or 8, 8, 7 and 7: "the mean of their means isn't"."""
    generator = torch.Generator().manual_seed(0)
    batch = torch.rand(images, 1, 8, 8, generator=generator, dtype=torch.float64)
    labels = torch.randint(10, (images,), generator=generator)
    parts = zip(batch.tensor_split(4), labels.tensor_split(4), strict=True)
    mean = torch.stack([gradients(*part) for part in parts]).mean(0)
    same = torch.allclose(mean, gradients(batch, labels), rtol=1e-9, atol=1e-12)
    assert same == (images % 4 == 0)


def test_four_ranks_with_the_same_batch_take_a_quarter_of_the_steps():
    """Rounded up: the last step of an epoch is not full."""
    digits = torch.utils.data.TensorDataset(torch.zeros(1438))
    one = len(torch.utils.data.DataLoader(digits, 32))
    sampler = torch.utils.data.DistributedSampler(digits, num_replicas=4, rank=0)
    four = len(torch.utils.data.DataLoader(digits, 32, sampler=sampler))
    assert four == -(-one // 4)


# Find out why two nodes don't connect


def test_rule_that_blocks_the_port_is_the_one_that_was_recorded():
    """The page gives it to learners; the transcript's setup has it, in one line."""
    rule = re.search(r"'(ip rule add .*? rule del pref 0)'", PAGE, re.S)
    assert rule, "the page no longer says how to block a port"

    def flat(text: str) -> str:
        return " ".join(text.replace("\\", " ").split())

    assert flat(rule[1]) in flat((RECORDED / "catalog.toml").read_text())
