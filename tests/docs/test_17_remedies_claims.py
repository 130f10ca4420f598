"""Each remedy of lesson 17 is a diff of a few lines of docs/examples/17_slow.py."""

import re
from pathlib import Path

import pytest

from tests.docs.ranks_17_remedies import applied, remedies
from tests.in_ranks import assert_right, every_check_in
from tests.needs import needs
from tests.scripts.trainings import SRC, torchrun

HERE = Path(__file__).resolve().parent


def test_every_option_of_the_program_has_its_diff_of_a_few_lines():
    text = (SRC / "instruments/17_speed.py").read_text(encoding="utf-8")
    found = remedies()
    options = re.findall(r'^    "([a-z0-9-]+)": ', text, re.M)
    assert sorted(found) == sorted([*options, "for a GPU"])
    for name, hunks in found.items():
        added = [line for hunk in hunks for line in hunk if line.startswith("+")]
        assert 1 <= len(added) <= 6, name
        compile(applied(hunks), name, "exec")


@pytest.mark.nightly
@every_check_in(HERE / "ranks_17_remedies.py")
def test_claim(check, verdict_of):
    assert_right(verdict_of(check))


RUN = """
import torch
import torch.distributed as dist
import power, slow
from tests.docs.ranks_17_remedies import third_step

dist.init_process_group("gloo")
for module in slow, power:
    built, build = [], module.build
    module.build = lambda device: built.append(build(device)) or built[-1]
    counted, loss = third_step(module.train)
    mine = torch.cat([p.detach().flatten() for p in built[-1].parameters()])
    others = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(others, mine)
    dist.all_reduce(loss, dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        print(*counted, loss.item(), all(torch.equal(mine, other) for other in others))
    built.clear()
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.nightly
def test_power_sgd_sends_little_and_trains_nearly_the_same(tmp_path):
    (tmp_path / "slow.py").write_text(applied([]), encoding="utf-8")
    (tmp_path / "power.py").write_text(applied(remedies()["powersgd"]), "utf-8")
    (tmp_path / "run.py").write_text(RUN, encoding="utf-8")
    both = f"{SRC}:{SRC.parent}"
    done = torchrun(tmp_path, 2, tmp_path / "run.py", PYTHONPATH=both)
    assert done.returncode == 0, done.stderr
    slow, power = (line.split() for line in done.stdout.splitlines())
    assert (slow[:3], power[:3]) == (["28", "8.05", "2.87"], ["12", "0.21", "2.87"])
    assert abs(float(slow[3]) - float(power[3])) < 0.01
    assert slow[4] == power[4] == "True", "ranks end with unequal weights"


@pytest.mark.nightly
@needs("g++")
def test_compiled_blocks_train_the_same_but_not_with_small_buckets(tmp_path):
    hunks = remedies()["compile"]
    outcomes = []
    for name, chosen in (("slow", []), ("compiled", hunks), ("small", hunks[:-1])):
        path = tmp_path / f"{name}.py"
        path.write_text(applied(chosen), encoding="utf-8")
        kernels = {"TORCHINDUCTOR_CACHE_DIR": tmp_path / "kernels"}
        outcomes.append(torchrun(tmp_path, 2, path, PYTHONPATH=str(SRC), **kernels))
    slow, compiled, small = outcomes
    assert slow.returncode == compiled.returncode == 0, compiled.stderr
    assert slow.stdout == compiled.stdout and slow.stdout.startswith("loss ")
    assert list((tmp_path / "kernels").rglob("*.so"))
    assert small.returncode == 1 and "First bucket should be smaller" in small.stderr
