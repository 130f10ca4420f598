"""The page "Launchers beyond schedulers": its table against the files and torchrun."""

import re
import sys

import pytest
import torch.distributed as dist
from torch.distributed.run import get_args_parser

from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "src"))
from common.launchers import find_launcher

PAGE = (ROOT / "docs/production/other_launchers.rst").read_text(encoding="utf-8")
SCRIPTS = ROOT / "job_scripts"


def words_of(launcher):
    """The variables in the row of a launcher."""
    row = PAGE.split(f"\n   * - {launcher}\n")[1].split("\n   * - ")[0]
    return set(re.findall(r"``([A-Z_]{4,})``", row))


def test_torchrun_takes_missing_options_from_pet_variables(monkeypatch):
    for name, value in (("NNODES", "4"), ("NPROC_PER_NODE", "8"), ("NODE_RANK", "3")):
        monkeypatch.setenv(f"PET_{name}", value)
    monkeypatch.setenv("PET_MASTER_ADDR", "train-node-0-0.train")
    args = get_args_parser().parse_args(["program.py"])
    assert (args.nnodes, args.nproc_per_node, args.node_rank) == ("4", "8", 3)
    assert args.master_addr == "train-node-0-0.train"
    assert int(args.nnodes) * int(args.nproc_per_node) == 32
    assert ":answer: 32" in PAGE


def test_torchrun_of_a_pytorch_job_reads_the_nodes_and_not_the_ranks(monkeypatch):
    """Four pods with nprocPerNode 8: WORLD_SIZE is 32, and torchrun ignores it."""
    given = {"RANK": "3", "WORLD_SIZE": str(4 * 8)}
    given |= {"PET_NNODES": "4", "PET_NPROC_PER_NODE": "8", "PET_NODE_RANK": "3"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
        assert f"``{name}``" in PAGE
    args = get_args_parser().parse_args(["program.py"])
    assert (args.nnodes, args.nproc_per_node, args.node_rank) == ("4", "8", 3)
    assert "``WORLD_SIZE`` to the number of pods times ``nprocPerNode``" in PAGE


@pytest.mark.parametrize(
    ("launcher", "file"),
    [("TrainJob (Kubeflow Trainer 2)", "jobset.yaml"), ("SkyPilot", "skypilot.yaml")],
)
def test_variables_of_the_table_are_those_that_the_file_uses(launcher, file):
    text = (SCRIPTS / file).read_text(encoding="utf-8")
    used = set(re.findall(r"\b(?:PET|SKYPILOT)_[A-Z_]+", text))
    assert words_of(launcher) == used


def test_launcher_is_the_one_of_the_table():
    assert find_launcher({"TORCHELASTIC_RUN_ID": "1", "PET_NNODES": "2"}) == "torchrun"
    assert find_launcher({name: "1" for name in words_of("Ray Train")}) == "by hand"
    # without torchrun, a pod is a process alone
    assert find_launcher(dict.fromkeys(words_of("SkyPilot"), "1")) == "python"


def test_group_cannot_be_formed_twice():
    message = "trying to initialize the default process group twice!"
    assert message in PAGE
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ValueError, match=message):
            dist.init_process_group(
                "gloo", store=dist.HashStore(), rank=0, world_size=1
            )
    finally:
        dist.destroy_process_group()
