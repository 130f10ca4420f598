"""Every program of src/ with one rank, and several ranks that share the GPU by gloo."""

import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.gpu.programs import (
    NOT_ALONE,
    ONE_LOSS,
    ONE_RANK,
    SHARED,
    SHARED_REFUSE,
    shared,
)
from tests.gpu.results import ROOT, write_transcript
from tests.gpu.running import run, shown
from tests.launched import free_port

# What measures a time runs alone, in test_profiles.py
MEASURES = {
    "17_fsdp_accumulation.py",
    "17_profile.py",
    "17_recipe.py",
    "17_speed.py",
    "18_roofline.py",
    "18_scaling.py",
    "18_cost.py",
}
# What takes long on a CPU, and what takes less
SHORTER = {
    " --ranks 1 --batch-size 64": " --ranks 1 --batch-size 2 --steps 2 --rounds 1",
    "17_speed.py 5 ": "17_speed.py 1 ",
    "17_speed.py 3 ": "17_speed.py 1 ",
    "17_fsdp_accumulation.py 5": "17_fsdp_accumulation.py 1",
    "17_recipe.py": "17_recipe.py --steps 2 --lines tf32 fused",
    "18_roofline.py": "18_roofline.py --width 256",
    "cuda:0": "cpu",
}
# Programs that share the GPU: nothing here is timed
AT_ONCE = max(4, (os.cpu_count() or 4) // 2)


ALL_LOSSES = "test_all_methods_start_from_the_loss_of_one_device"


def run_all(folder: Path, command: str, kind: str, **variables: str):
    """Run the commands that "&&" joins; returns (transcript, status, errors)."""
    parts = []
    for one in command.format(port=free_port()).split(" && "):
        done = run(folder, one, kind, **variables)
        parts.append(shown(one, done))
        if done.returncode:
            break
    return "\n".join(parts), done.returncode, done.stderr


def chosen(request, names: Iterable[str]) -> list[str]:
    """Those of the programs that a chosen test is about: -k may have left some out."""
    items = [item for item in request.session.items if item.path == request.path]
    about = {getattr(item, "callspec", None) and item.callspec.id for item in items}
    needs_all = any(item.name == ALL_LOSSES for item in items)
    return [name for name in names if name in about or (needs_all and name in ONE_LOSS)]


def in_pool(folder: Path, commands: dict[str, str], kind: str, **variables: str):
    """Name -> the future of what :func:`run_all` returns, some at a time."""
    pool = ThreadPoolExecutor(AT_ONCE)
    return {
        name: pool.submit(run_all, folder / name, command, kind, **variables)
        for name, command in commands.items()
    }


def for_a_cpu(command: str) -> str:
    """The same command, but shorter, and on the CPU."""
    for long, short in SHORTER.items():
        command = command.replace(long, short)
    return command


def losses(text: str) -> list[float]:
    """Those that a transcript's log lines show, in order."""
    return [
        float(loss) for loss in re.findall(r"^Step \d+ \| loss ([\d.]+)", text, re.M)
    ]


@pytest.fixture(scope="module")
def alone(request, tmp_path_factory):
    names = [name for name in ONE_RANK if name not in MEASURES]
    commands = {name: ONE_RANK[name] for name in chosen(request, names)}
    return in_pool(tmp_path_factory.mktemp("alone"), commands, "cuda")


@pytest.fixture(scope="module")
def together(request, tmp_path_factory):
    names = chosen(request, [*SHARED, *SHARED_REFUSE])
    commands = {name: shared(name) for name in names}
    folder = tmp_path_factory.mktemp("together")
    return in_pool(folder, commands, "cuda", WORKSHOP_SHARE_GPU="1")


@pytest.mark.gpu
@pytest.mark.parametrize("name", [n for n in ONE_RANK if n not in MEASURES])
def test_program_runs_with_one_rank(name, alone):
    text, status, errors = alone[name].result()
    write_transcript(f"one_rank_{name[:-3]}", text)
    assert status == 0, errors
    assert "nan" not in text.lower().split()


@pytest.mark.gpu
def test_all_methods_start_from_the_loss_of_one_device(alone):
    found = {name: losses(alone[name].result()[0])[:1] for name in ONE_LOSS}
    for name, loss in found.items():
        assert loss == pytest.approx(found["13_train_gpt.py"], rel=2e-3), name


@pytest.mark.gpu
@pytest.mark.parametrize("name", SHARED)
def test_ranks_share_the_gpu_through_gloo(name, together):
    text, status, errors = together[name].result()
    write_transcript(f"shared_{name[:-3]}", text)
    assert status == 0, errors


@pytest.mark.gpu
@pytest.mark.parametrize("name", SHARED_REFUSE)
def test_what_gloo_cannot_send_is_one_sentence(name, together):
    text, status, errors = together[name].result()
    write_transcript(f"shared_{name[:-3]}", text)
    assert status != 0
    assert "gloo can't send a tensor of cuda" in errors


def test_every_program_is_started_or_has_a_reason():
    programs = {path.name for path in (ROOT / "src").rglob("[0-9]*.py")}
    assert set(ONE_RANK) | set(NOT_ALONE) == programs
    assert not set(ONE_RANK) & set(NOT_ALONE)
    for name, command in ONE_RANK.items():
        assert re.search(rf"src/(instruments/)?{name}\b", command)
    assert set(ONE_LOSS) < set(ONE_RANK)


def test_pages_show_what_this_suite_leaves():
    """``.. on-a-gpu:: NAME`` waits for NAME.gpu.txt, which only a test here writes."""
    left = {name[:-3] for name in MEASURES}
    left |= {f"one_rank_{name[:-3]}" for name in ONE_RANK if name not in MEASURES}
    for path in Path(__file__).parent.glob("test_*.py"):
        left |= set(re.findall(r'write_numbers\("(\w+)", .+, table', path.read_text()))
    shown = set()
    for page in (ROOT / "docs").rglob("*.rst"):
        shown |= set(re.findall(r"^ *\.\. on-a-gpu:: (\S+)$", page.read_text(), re.M))
    assert {name.removeprefix("one_rank_")[:2] for name in shown} >= {
        "05",
        "06",
        "15",
        "17",
        "18",
    }
    assert shown <= left, f"no test leaves these: {sorted(shown - left)}"


def test_programs_dry(tmp_path):
    """One of them through the same functions, without a device."""
    futures = in_pool(tmp_path, {"13": ONE_RANK["13_train_gpt.py"]}, "cpu")
    text, status, errors = futures["13"].result()
    assert status == 0, errors
    assert text.startswith("$ python src/13_train_gpt.py 2 --width=96")
    assert len(losses(text)) == 2
    path = write_transcript("13", text, tmp_path)
    assert path.read_text().splitlines()[-1].startswith("Recorded with torch ")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ONE_RANK)
def test_command_runs_without_a_gpu(name, tmp_path):
    text, status, errors = run_all(tmp_path, for_a_cpu(ONE_RANK[name]), "cpu")
    assert status == 0, errors
    if name in ONE_LOSS:
        assert losses(text)[0] == pytest.approx(5.9, abs=0.2)


@pytest.mark.nightly
@pytest.mark.parametrize("name", SHARED)
def test_shared_command_runs_without_a_gpu(name, tmp_path):
    text, status, errors = run_all(tmp_path, for_a_cpu(shared(name)), "cpu")
    assert status == 0, errors
    assert text.startswith("$ torchrun")


def test_command_that_fails_ends_the_list_and_shows_why(tmp_path):
    command = "python src/01_single_device.py 0 1 && python src/02_hello_ranks.py"
    text, status, _ = run_all(tmp_path, command, "cpu")
    assert status == 2 and text.endswith("[exit status 2]")
    assert "02_hello" not in text
