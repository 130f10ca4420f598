"""What works on this machine: the checks behind ``workshop doctor``.

Each check answers in a few seconds at most, never raises, and never hangs: what
talks to another program runs in a process of its own with a time limit. Absent
optional parts (a GPU, a scheduler) are no failure; their ``ok`` is ``None``.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workshop.cluster.nodes.containers import cure_for_namespaces, in_container
from workshop.doctor import host_name
from workshop.doctor.cgroup import Limits, limits
from workshop.doctor.programs import COMMAND_LIMIT, Check, apt, probe, run, tool
from workshop.system import temporary
from workshop.versions import (
    NEWEST_TRIED_TORCH,
    OLDEST_PYTHON,
    OLDEST_TORCH,
    installed_torch,
    is_older,
    release,
)

NEEDED_GB = 1.0  # of free disk for snapshots and the site
NEEDED_MEMORY = 2e9  # bytes: 4 ranks of about 300 MB each, the grader, an editor
NEEDED_SHARED_MB = 256
SHARED_MEMORY = "/dev/shm"
NEEDED_LIMIT = 1024  # open files and processes: ranks, their workers and connections
LIMIT_OPTIONS = {"open files": "-n", "processes": "-u"}

# Importing torch can take a while on a network file system that is cold.
TORCH_LIMIT = 90
GLOO_LIMIT = 30


def checks() -> list[Check]:
    """All checks, the required ones first; they run side by side."""
    named: list[tuple[str, Callable[[], list[Check]]]] = [
        ("Python", _python),
        ("torch", _torch_and_devices),
        ("gloo", _gloo),
        ("host name", _host_name),
        ("MPI", _mpi),
        ("Slurm", _slurm),
        ("practice cluster", _practice_cluster),
        ("PBS", _pbs),
        ("containers", _containers),
        ("isolation", _isolation),
        ("machine", _machine),
        ("disk", _disk),
        ("Chromium", _chromium),
    ]
    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(_never_raise, named))
    return [check for group in found for check in group]


def broken(results: list[Check]) -> list[Check]:
    """The required parts that do not work: ``workshop doctor`` then exits with 3."""
    return [check for check in results if check.required and check.ok is False]


def _never_raise(named: tuple[str, Callable[[], list[Check]]]) -> list[Check]:
    name, function = named
    try:
        return function()
    except Exception as error:  # a report about a broken machine must not break
        required = name in ("Python", "torch", "gloo")
        return [Check(name, False, f"could not be looked at: {error!r}", "", required)]


# Python and torch


def _python() -> list[Check]:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        cure = "make tour PYTHON=python3.11 creates the environment with a newer one"
        return [Check("Python", False, f"{version}, needed is 3.10", cure, True)]
    return [Check("Python", True, version, required=True)]


TORCH_PROBE = """
import json, torch
found = {"version": torch.__version__, "devices": []}
if torch.accelerator.is_available():
    kind = torch.accelerator.current_accelerator().type
    count = torch.accelerator.device_count()
    found["kind"] = kind
    module = getattr(torch, kind, None)
    name = getattr(module, "get_device_name", lambda index: kind)
    found["devices"] = [name(index) for index in range(count)]
dist = torch.distributed
found["distributed"] = dist.is_available()
if dist.is_available():
    found["nccl"] = dist.is_nccl_available()
    found["mpi"] = dist.is_mpi_available()
    if found["nccl"] and found["devices"]:
        found["nccl_version"] = ".".join(map(str, torch.cuda.nccl.version()))
print("\\n" + json.dumps(found))
"""


def _torch_and_devices() -> list[Check]:
    cure = "make tour repairs the environment"
    installed = installed_torch()
    if installed is None:
        detail = f"not installed for {sys.executable}, needed is {OLDEST_TORCH}"
        return [Check("torch", False, detail, cure, True)]
    if is_older(installed, OLDEST_TORCH):
        detail = f"{installed} is too old, the grader needs {OLDEST_TORCH} or newer"
        cure = "run make tour, or activate an environment that has a newer torch"
        return [Check("torch", False, detail, cure, True)]
    answer = probe(TORCH_PROBE, TORCH_LIMIT)
    if isinstance(answer, str):
        detail = f"{installed} is installed, but does not import: {answer}"
        return [Check("torch", False, detail, cure, True)]
    version = answer["version"]
    if not answer["distributed"]:
        detail = f"{version} was built without torch.distributed"
        return [Check("torch", False, detail, cure, True)]
    torch = Check("torch", True, _how_well_tried(version), required=True)
    return [torch, _accelerator(answer), _nccl(answer)]


def _how_well_tried(version: str) -> str:
    """The version of torch, and whether the grader was tried with such a one."""
    tried = f"tried with {OLDEST_TORCH} to {NEWEST_TRIED_TORCH}"
    if release(version) > release(NEWEST_TRIED_TORCH):
        return f"{version} is newer than what was tried ({tried}): messages may differ"
    return f"{version}, {tried}"


def _accelerator(answer: dict) -> Check:
    names = answer["devices"]
    if not names:
        return Check("accelerator", None, "none: everything here runs on the CPU")
    kinds = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    return Check("accelerator", True, f"{answer['kind']}: {kinds}")


def _nccl(answer: dict) -> Check:
    if not answer.get("nccl"):
        return Check("NCCL", None, "not in this build of torch; gloo is used")
    if not answer["devices"]:
        return Check("NCCL", None, "in this build of torch, but there is no GPU")
    return Check("NCCL", True, answer.get("nccl_version", "version unknown"))


GLOO_PROBE = """
import json, os, sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def main(rank, address):
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    dist.destroy_process_group()
    if total.item() != 3.0:
        sys.exit(f"1 + 2 became {total.item()}")

address = "file://" + sys.argv[1]
# fork: the child inherits torch, so that two ranks cost one import
mp.start_processes(main, (address,), nprocs=2, start_method="fork")
print("\\n" + json.dumps({"sum": 3}))
"""


def _gloo() -> list[Check]:
    """Two ranks really add their numbers over this machine's network interface."""
    if why := temporary.problem():
        return [Check("gloo", False, f"not tried: {why}", temporary.CURE, True)]
    with tempfile.TemporaryDirectory() as folder:
        meeting_place = str(Path(folder) / "rendezvous")
        answer = probe(GLOO_PROBE, TORCH_LIMIT + GLOO_LIMIT, meeting_place)
    if isinstance(answer, str):
        cure = (
            "set GLOO_SOCKET_IFNAME=lo, and see that this machine's own name is in "
            "/etc/hosts"
        )
        return [Check("gloo", False, f"two ranks can't connect: {answer}", cure, True)]
    return [Check("gloo", True, "two ranks added their numbers", required=True)]


def _host_name() -> list[Check]:
    """Whether the ranks of torchrun find each other by this machine's own name."""
    what, cure = host_name.problem()
    if what:
        return [Check("host name", False, what, cure)]
    return [Check("host name", True, f"{socket.gethostname()}, which torchrun can use")]


ISOLATION_PROBE = """
import json
from workshop.grader.engine import isolation
print("\\n" + json.dumps({"exposed": isolation.probe()}))
"""


def _isolation() -> list[Check]:
    """Whether exercises are kept from this machine's files and network."""
    answer = probe(ISOLATION_PROBE, COMMAND_LIMIT)
    exposed = answer if isinstance(answer, str) else answer["exposed"]
    if not exposed:
        detail = "exercises cannot change this machine's files, nor use its network"
        return [Check("isolation", True, detail)]
    detail = f"exercises run like any program of yours: {exposed}"
    cure = "grade other people's answers in a container or a virtual machine"
    if in_container():
        cure = "the container protects the machine; it can't protect the clone in it"
    if of_container := cure_for_namespaces():
        cure = of_container
    return [Check("isolation", None, detail, cure)]


# Launchers, schedulers, containers


def _mpi() -> list[Check]:
    mpirun = shutil.which("mpirun")
    if not mpirun:
        cure = apt("openmpi-bin")
        return [
            Check("MPI", None, "no mpirun on PATH; torchrun works without it", cure)
        ]
    return [tool("MPI", [mpirun, "--version"])]


def _slurm() -> list[Check]:
    missing = [name for name in ("sbatch", "sinfo") if not shutil.which(name)]
    if missing:
        cure = apt("slurm-wlm")
        return [Check("Slurm", None, f"no {' and no '.join(missing)} on PATH", cure)]
    # Without a configuration even "--version" fails: then only the controller counts.
    version = tool("Slurm", ["sbatch", "--version"])
    installed = version.detail if version.ok else "Slurm's commands are"
    status, output = run(["sinfo", "--noheader", "--format=%D"], COMMAND_LIMIT)
    if status == 0:
        nodes = sum(int(word) for word in output.split() if word.isdigit())
        return [Check("Slurm", True, f"{installed}, {nodes} nodes")]
    detail = f"{installed} installed, but no controller answers"
    cure = "log in to a cluster to submit jobs, or start one: workshop cluster up"
    return [Check("Slurm", None, detail, cure)]


def _practice_cluster() -> list[Check]:
    from workshop.cluster.nodes import missing

    name = "practice cluster"
    reasons = missing()
    if not reasons:
        return [Check(name, True, "can run here: workshop cluster up")]
    detail, _, cure = reasons[0].rpartition(": ")
    return [Check(name, None, detail, cure.replace("`", ""))]


def _pbs() -> list[Check]:
    qsub = shutil.which("qsub")
    if not qsub:
        return [Check("PBS", None, "no qsub on PATH; only PBS clusters have it")]
    if not shutil.which("pbsdsh"):
        return [Check("PBS", None, "qsub is there, pbsdsh is not: another scheduler?")]
    return [tool("PBS", [qsub, "--version"])]


def _containers() -> list[Check]:
    found = [name for name in ("docker", "podman", "apptainer") if shutil.which(name)]
    if not found:
        return [Check("containers", None, "no docker, podman or apptainer on PATH")]
    results = [_container_tool(name) for name in found]
    working = "; ".join(check.detail for check in results if check.ok)
    return [Check("containers", True, working) if working else results[0]]


def _container_tool(name: str) -> Check:
    version = tool("containers", [name, "--version"])
    if name != "docker" or not version.ok:
        return version
    status, _ = run(["docker", "info"], COMMAND_LIMIT)
    if status == 0:
        return version
    cure = "start its daemon, or ask for the right to use it (group docker)"
    return Check("containers", None, f"{version.detail}, but no daemon answers", cure)


# The machine


def _machine() -> list[Check]:
    allowed = limits()
    return [_cores(allowed), _memory(allowed), _shared_memory(), _limits()]


def _cores(allowed: Limits) -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    cores = cores or os.cpu_count() or 1
    usable, detail = float(cores), f"{cores} usable"
    if allowed.cpus is not None and allowed.cpus < cores:
        usable = allowed.cpus
        detail = f"{usable:g} usable, this container or job may not use all of {cores}"
    if usable >= 2:
        return Check("cores", True, detail)
    cure = "four ranks will share one core: checks are correct, only slower"
    return Check("cores", None, detail, cure)


def _memory(allowed: Limits) -> Check:
    free = _free_memory()
    if free is None:
        return Check("memory", None, "unknown on this system")
    detail, cure = f"{free / 1e9:.1f} GB free", "close other programs before you check"
    if allowed.memory_free is not None and allowed.memory_free < free:
        free, most = allowed.memory_free, (allowed.memory or 0) / 1e9
        detail = f"{free / 1e9:.1f} GB free of {most:.1f} GB for this container or job"
        cure = "start the container with more (docker run --memory 4g), or ask for more"
    enough = free >= NEEDED_MEMORY
    if enough:
        cure = ""
    return Check("memory", enough, detail, cure)


def _free_memory() -> int | None:
    """Bytes that the whole machine could give to new processes."""
    try:
        text = Path("/proc/meminfo").read_text()
        return int(re.findall(r"MemAvailable:\s+(\d+) kB", text)[0]) * 1024
    except (OSError, IndexError):
        return None


def _shared_memory() -> Check:
    """Room in /dev/shm, of which containers get 64 MB unless told otherwise."""
    try:
        megabytes = shutil.disk_usage(SHARED_MEMORY).free / 1e6
    except OSError:
        return Check("shared memory", None, f"this system has no {SHARED_MEMORY}")
    detail = f"{megabytes:,.0f} MB free in {SHARED_MEMORY}"
    if megabytes >= NEEDED_SHARED_MB:
        return Check("shared memory", True, detail)
    cure = f"remove what other programs left in {SHARED_MEMORY}"
    if in_container():
        cure = "start the container with --shm-size=1g (compose: shm_size: 1gb)"
    why = "DataLoader workers pass their batches through it"
    return Check("shared memory", None, f"{detail}; {why}", cure)


def _limits() -> Check:
    """What `ulimit` allows each of this user's processes here."""
    import resource

    allowed = {
        "open files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "processes": resource.getrlimit(resource.RLIMIT_NPROC)[0],
    }
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    shown = [f"{_limit(value)} {name}" for name, value in allowed.items()]
    locked_memory = "unlimited"
    if locked >= 0:
        locked_memory = f"{locked / 1e6:,.1f} MB of"
    detail = f"{', '.join(shown)}, {locked_memory} locked memory"
    few = [name for name, value in allowed.items() if 0 <= value < NEEDED_LIMIT]
    if few:
        option = LIMIT_OPTIONS[few[0]]
        cure = f"ulimit {option} {NEEDED_LIMIT} in this shell, or in your job script"
        return Check("limits", None, f"{detail}: too few {few[0]}", cure)
    return Check("limits", True, detail)


def _limit(value: int) -> str:
    return "unlimited" if value < 0 else f"{value:,}"


def _disk() -> list[Check]:
    """Room here and for temporary files; job scripts' checks start programs there."""
    here = _room("disk", str(Path.cwd()), "here")
    why = temporary.problem()
    if why:
        return [Check("temporary", False, why, temporary.CURE, True), here]
    place = tempfile.gettempdir()
    row = _room("temporary", place, f"in {place}")
    noexec = temporary.problem_of_programs()
    if noexec:
        detail = f"{row.detail}; {noexec}: job scripts can't be checked"
        row = Check("temporary", False, detail, temporary.CURE)
    return [here, row]


def _room(name: str, place: str, shown: str) -> Check:
    gigabytes = shutil.disk_usage(place).free / 1e9
    ok = gigabytes >= NEEDED_GB
    cure = "" if ok else f"make room in {place}: snapshots need it"
    return Check(name, ok, f"{gigabytes:.0f} GB free {shown}", cure)


def _chromium() -> list[Check]:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return [tool("Chromium", [name, "--version"])]
    detail = "none; only the tests of the site use it"
    return [Check("Chromium", None, detail, apt("chromium"))]
