"""What measures, alone on the GPU: profiler, roofline, scaling, checkpoints."""

import json
import re

import pytest

from tests.gpu.programs import ONE_RANK
from tests.gpu.results import write_numbers, write_transcript
from tests.gpu.running import run, shown

# 76 million parameters: files of 0.9 GB each, with AdamW's state
LARGE = "--width=1024 --heads=16 --blocks=6 --context=256 --batch-size=16"
TINY = "--width=16 --heads=2 --blocks=1 --context=8 --batch-size=4"


def kernels_in(trace: dict) -> dict[str, float]:
    """Name -> microseconds of what ran on the device, of a trace of torch.profiler."""
    found: dict[str, float] = {}
    for event in trace["traceEvents"]:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            found[event["name"]] = found.get(event["name"], 0) + event["dur"]
    return found


def profile(folder, command, kind):
    """Run 17_profile.py; returns its transcript and what ran on the device."""
    done = run(folder, command, kind)
    assert done.returncode == 0, done.stderr
    trace = json.loads((folder / "trace.json").read_text(encoding="utf-8"))
    return shown(command, done), kernels_in(trace)


@pytest.mark.gpu
def test_profiler_sees_the_kernels(gpu, tmp_path):
    text, kernels = profile(tmp_path, ONE_RANK["17_profile.py"], "cuda")
    write_transcript("17_profile", text)
    longest = sorted(kernels.items(), key=lambda pair: -pair[1])[:10]
    write_numbers("profile", {"kernels": len(kernels), "longest_us": longest})
    assert kernels


def test_profile_dry(tmp_path):
    text, kernels = profile(
        tmp_path, "python src/instruments/17_profile.py --steps 1", "cpu"
    )
    assert "rank 0" in text and kernels == {}


def numbers_of_roofline(text: str) -> dict[str, float]:
    """GFLOP/s and GB/s of the line that begins with the device."""
    match = re.search(r"^\w+: ([\d.]+) GFLOP/s, ([\d.]+) GB/s$", text, re.M)
    assert match, text
    return {"gflops": float(match[1]), "gb_per_s": float(match[2])}


def roofline(folder, command, kind):
    done = run(folder, command, kind)
    assert done.returncode == 0, done.stderr
    return shown(command, done), numbers_of_roofline(done.stdout)


@pytest.mark.gpu
def test_roofline_of_the_card(gpu, tmp_path):
    command = "python src/instruments/18_roofline.py --width 16384"
    text, found = roofline(tmp_path, command, "cuda")
    write_transcript("18_roofline", text)
    write_numbers("roofline", found)


def test_roofline_dry(tmp_path):
    _, found = roofline(
        tmp_path, "python src/instruments/18_roofline.py --width 64", "cpu"
    )
    assert found["gflops"] > 0 and found["gb_per_s"] > 0


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name",
    [
        "17_fsdp_accumulation.py",
        "17_recipe.py",
        "17_speed.py",
        "18_cost.py",
        "18_scaling.py",
    ],
)
def test_times_of_one_rank(name, gpu, tmp_path):
    done = run(tmp_path, ONE_RANK[name], "cuda", limit=300)
    write_transcript(name[:-3], shown(ONE_RANK[name], done))
    assert done.returncode == 0, done.stderr


def save_and_resume(folder, sizes, steps, kind):
    """Train with saves at once and in the background; then the rest from the last.

    Returns the transcripts, and the losses of the last step of each run.
    """
    program, text, last = "python src/16_fsdp_tensor_parallel.py", [], {}
    for way, more in {"at_once": "", "background": " --async-save"}.items():
        saving = f"--checkpoints {way} --save-every {steps}{more}"
        for count in (steps, 2 * steps):
            command = f"{program} {count} {sizes} {saving}"
            done = run(folder, command, kind)
            assert done.returncode == 0, done.stderr
            text.append(shown(command, done))
            last[way, count] = re.findall(r"loss ([\d.]+)$", done.stdout, re.M)[-1]
        assert f"Resuming from {way}/checkpoint-{steps}" in done.stdout
    return "\n".join(text), last


@pytest.mark.gpu
def test_checkpoint_in_the_background_resumes_as_one_at_once(gpu, tmp_path):
    text, last = save_and_resume(tmp_path, LARGE, 4, "cuda")
    write_transcript("16_async_save", text)
    assert float(last["background", 8]) == pytest.approx(
        float(last["at_once", 8]), rel=1e-2
    )


def test_save_and_resume_dry(tmp_path):
    _, last = save_and_resume(tmp_path, TINY, 1, "cpu")
    assert last["background", 2] == last["at_once", 2]
