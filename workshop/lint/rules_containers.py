"""Rules about the containers that ranks run in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from . import pages
from .launches import LAUNCHERS, PYTHON, Launch, base
from .rule import WARNING, Problem, Table
from .rules_ends import known
from .script import Script

TABLE = Table()
# The options by which each engine shows the GPUs.
SHOWS = {
    "apptainer": r"--(nv|nvccli|rocm)$|.*(libcuda|nvidia)",
    "singularity": r"--(nv|nvccli|rocm)$|.*(libcuda|nvidia)",
    "docker": r"--(gpus?|device|runtime|privileged)\b|.*NVIDIA_|--hooks-dir",
    "podman": r"--(gpus?|device|runtime|privileged)\b|.*NVIDIA_|--hooks-dir",
    "podman-hpc": r"--(gpus?|device|runtime|privileged)\b|.*NVIDIA_|--hooks-dir",
}
VERBS = ("exec", "run")
OFFERED = {"apptainer": "--nv", "singularity": "--nv", "docker": "--gpus all"}
BY_PODMAN = "--device nvidia.com/gpu=all"
TOLD_OTHERWISE = (r"(APPTAINER|SINGULARITY)_(NV|NVCCLI|ROCM)", "gloo")
# AMD's devices are in /dev, which a container has without an option.
OF_AMD = re.compile(r"rocm|\bamd\b|\bmi[23]\d\d|lumi|HIP_VISIBLE|ROCR_VISIBLE", re.I)
OF_NVIDIA = re.compile(r"nvcr\.io|nvidia|cuda", re.I)
GPU_OPTIONS = {"gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "l ngpus"}
AN_IMAGE = re.compile(r"\$|.*(\.sif|\.sqsh|:)")


@dataclass(frozen=True)
class Container:
    """The engine that starts a container, and its words up to the program."""

    engine: str
    verb: str
    words: list[str]


@TABLE.add("DT130", WARNING, pages.CONTAINERS)
def container_without_gpus(script: Script) -> Iterator[Problem]:
    """A container that doesn't see the GPUs

    A container has the GPUs of its node only if its engine gets an option for that.
    Without it, torch.cuda.is_available() is False, and the training fails or runs on
    the CPU.

    Cure:
        apptainer exec --nv, docker run --gpus all, podman run --device
        nvidia.com/gpu=all.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        apptainer exec torch.sif torchrun --standalone --nproc-per-node=4 train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        apptainer exec --nv torch.sif torchrun --standalone --nproc-per-node=4 train.py
    """
    if script.uses(*TOLD_OTHERWISE) or OF_AMD.search(script.text):
        return
    for launch in script.launches:
        container = container_of(launch)
        if container is None or not known(launch):
            continue
        if may_show_gpus(container) or not wants_gpus(script, launch, container):
            continue
        option = OFFERED.get(container.engine, BY_PODMAN)
        shown = f"{container.engine} {container.verb}"
        what = f"`{shown}` gets no `{option}`, so `{launch.name}` finds no GPU"
        yield Problem(launch.line, what, f"{shown} {option} ...")


def container_of(launch: Launch) -> Container | None:
    """The engine and its options, in front of the shell or of the program."""
    texts = [token.text for token in launch.tokens]
    for words in (launch.shell.split(), texts):
        engine = next((n for n, word in enumerate(words) if base(word) in SHOWS), None)
        if engine is None:
            continue
        rest = words[engine + 1 :]
        verb = next((n for n, word in enumerate(rest) if word in VERBS), None)
        if verb is None:
            return None
        own = rest[verb + 1 :]
        end = next((n for n, word in enumerate(own) if is_program(word)), len(own))
        return Container(base(words[engine]), rest[verb], rest[:verb] + own[:end])
    return None


def is_program(word: str) -> bool:
    return base(word) in LAUNCHERS or bool(PYTHON.fullmatch(word))


def may_show_gpus(container: Container) -> bool:
    """An option shows them, or a variable may hold that option."""
    shows = re.compile(SHOWS[container.engine])
    if any(shows.match(word) for word in container.words):
        return True
    for before, word in pairwise(["", *container.words]):
        is_value = before.startswith("-") and "=" not in before
        if not word.startswith(("$", '"$')) or is_value:
            continue
        at = container.words.index(word)
        after = container.words[at + 1 : at + 2]
        return any(text.startswith("-") or AN_IMAGE.match(text) for text in after)
    return False


def wants_gpus(script: Script, launch: Launch, container: Container) -> bool:
    """The job asks for GPUs; or a launcher, in an image that is made for them."""
    asked = script.asked(launch)
    told = {*asked.options, *launch.starter_options} & GPU_OPTIONS
    gres = asked.value("gres") + launch.starter_options.get("gres", "")
    if told or "gpu" in gres or asked.gpus_per_node:
        return True
    by_image = any(OF_NVIDIA.search(word) for word in container.words)
    alone = script.dialect == "shell" and launch.kind in LAUNCHERS
    return alone and by_image and container.engine not in ("apptainer", "singularity")
