"""src/12_model_parallel.py and src/12_two_processes.py: what they print and refuse.

That forward and gradients equal one device's is tested in ranks, by
tests/docs/test_12_model_parallel_claims.py.
"""

import json
import re
from importlib import import_module

import pytest
import torch
import torch.nn.functional as F

from common import process_group
from common.data import count_correct, load_digits_split, make_model
from common.distributed import BadInput
from common.parallel import model_parallel as shared
from tests.scripts.trainings import SRC, script, sentence

model_parallel = import_module("12_model_parallel")

NAME = "12_model_parallel.py"
EPOCHS = 3


def arguments(**changed):
    chosen = {"cut": 5, "micro_batches": 1, "batch_size": 32, "learning_rate": 0.05}
    chosen |= {"total_epochs": EPOCHS, "replicas": None, "devices": None}
    return model_parallel.Config(**chosen | {"metrics": None} | changed)


@pytest.fixture(scope="module")
def on_one_device():
    """(loss of each epoch, images recognized) of a training of the whole model."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train_set, test_set = load_digits_split()
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    losses = []
    loader = shared.make_loader(train_set, 32)
    for _ in range(EPOCHS):
        loss_sum = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(labels)
        losses.append(loss_sum / len(train_set))
    torch.set_num_threads(threads)
    return losses, count_correct(model, test_set)[0]


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    options = ["--micro-batches", 3, "--metrics", "metrics.json"]
    return folder, script(folder, "12_two_processes.py", EPOCHS, *options)


def check_training(metrics, output, expected):
    losses, correct = expected
    assert metrics["loss"] == pytest.approx(losses[-1], rel=5e-2)  # rounding grows
    first = float(re.search(r"Loss (\S+) ->", output)[1])
    assert first == pytest.approx(losses[0], rel=1e-3)
    assert abs(metrics["correct"] - correct) <= 2 and metrics["total"] == 359
    assert metrics["accuracy"] > 0.95


def test_two_processes_train_like_one_device(two_processes, on_one_device):
    folder, process = two_processes
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["world_size"] == 2 and metrics["samples_per_s"] > 0
    check_training(metrics, process.stdout, on_one_device)


@pytest.mark.full
def test_one_process_trains_like_one_device(tmp_path, on_one_device, capsys):
    path = tmp_path / "metrics.json"
    cpu = torch.device("cpu")
    model_parallel.train_in_one_process(arguments(metrics=path), [cpu, cpu])
    metrics = json.loads(path.read_text())
    check_training(metrics, capsys.readouterr().out, on_one_device)


def test_cost_is_what_the_formula_says(tmp_path):
    process = script(
        tmp_path, "12_cost.py", SRC / "12_two_processes.py", 1, "--micro-batches", 3
    )
    assert process.returncode == 0, process.stderr
    rows = re.findall(r"^(\D+) ([\d,]+) +([\d,]+)(.*)$", process.stdout, re.MULTILINE)
    assert len(rows) == 10, process.stdout
    for name, measured, formula, more in rows:
        assert measured == formula and not more, name
    assert process.stdout.count("bytes on device") == 2


def test_replicas_train_as_one(tmp_path):
    """Two replicas of 16 images make the steps of one device with 32."""
    options = ["--replicas", 2, "--batch-size", 16, "--metrics", "metrics.json"]
    process = script(tmp_path, NAME, EPOCHS, *options)
    assert process.returncode == 0, process.stderr
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["world_size"] == 2 and metrics["total"] == 359
    assert metrics["accuracy"] > 0.95 and "Steps 45" in process.stdout


# -- bad input -----------------------------------------------------------------
def test_refusal_is_one_line(tmp_path):
    said = sentence(script(tmp_path, NAME, 1, "--devices", "cpu", "cuda:99"))
    assert "--devices cpu cuda:99: this machine does not have both" in said


def test_devices_for_replicas_are_refused(tmp_path):
    options = ["--replicas", 2, "--devices", "cpu", "cpu"]
    said = sentence(script(tmp_path, NAME, 1, *options))
    assert "--devices is for one model" in said


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"cut": 8}, "--cut 8 leaves nothing .* choose 1 to 7"),
        ({"micro_batches": 33}, "--micro-batches 33 of --batch-size 32 .* choose 32"),
        ({"micro_batches": 20}, "--micro-batches 20 .* would be 16 micro-batches"),
    ],
)
def test_what_cannot_be_divided_is_refused(changed, words):
    with pytest.raises(BadInput, match=words):
        shared.check_cuts(arguments(**changed), cuts=7)


@pytest.mark.parametrize("names", [["cpu", "gpu7"], ["cuda:99", "cpu"]])
def test_devices_that_are_not_there_are_refused(names):
    with pytest.raises(BadInput, match="does not have both"):
        model_parallel.choose_devices(arguments(devices=names))


def test_launcher_around_it_is_refused(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(BadInput, match=r"RANK=0 is set.*plain python"):
        shared.start_ranks(print, 2)


# -- machines with accelerators, which are imagined here -----------------------
@pytest.fixture
def imagine(monkeypatch):
    def imagined(count):
        monkeypatch.setattr(model_parallel, "count_accelerators", lambda: count)
        kind = torch.device("cuda")
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: kind)

    return imagined


def chosen(rank=0, **changed):
    devices = model_parallel.choose_devices(arguments(**changed), rank)
    return [str(device) for device in devices]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_one_process_takes_two_accelerators_if_there_are_two(count, imagine):
    imagine(count)
    assert chosen() == (["cuda:0", "cuda:1"] if count == 2 else ["cpu", "cpu"])
    assert chosen(devices=["cpu", "cpu"]) == ["cpu", "cpu"]


def test_each_replica_takes_two_accelerators(imagine):
    imagine(4)
    found = [chosen(rank, replicas=2) for rank in range(2)]
    assert found == [["cuda:0", "cuda:1"], ["cuda:2", "cuda:3"]]
    assert chosen(replicas=3) == ["cpu", "cpu"]


def test_replica_s_group_is_bound_to_none_of_its_two_devices(imagine, monkeypatch):
    """NCCL refuses tensors of another device than the one that it is bound to."""
    imagine(4)
    joined, current = [], []
    monkeypatch.setattr(torch.accelerator, "set_device_index", current.append)
    monkeypatch.setattr(process_group, "rendezvous", lambda *_, **__: iter([(0, 1, 2)]))
    monkeypatch.setattr(process_group, "refuse_shared_device", lambda *_: None)
    monkeypatch.setattr(
        process_group.dist,
        "init_process_group",
        lambda backend, **more: joined.append(
            (backend, more["rank"], more["device_id"])
        ),
    )
    monkeypatch.setattr(model_parallel, "train_in_one_process", lambda *_: None)
    monkeypatch.setattr(model_parallel.dist, "destroy_process_group", lambda: None)
    model_parallel.run_replica(1, 2, arguments(replicas=2))
    assert joined == [("nccl", 1, None)]
    assert current == [2]
    process_group.join_on(torch.device("cuda", 2), rank=1, world_size=2)
    assert joined[1:] == [("nccl", 1, torch.device("cuda", 2))]
