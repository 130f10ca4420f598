"""What this machine must have to run a practice cluster."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from workshop.cluster.nodes import containers

PACKAGES = {  # package: programs
    "slurm-wlm": ("slurmctld", "slurmd", "sinfo", "sbatch"),
    "munge": ("munged",),
    "iproute2": ("ip", "tc"),
    "util-linux": ("unshare", "nsenter", "setpriv"),
}


SETTINGS = Path("/proc/sys")


def missing() -> list[str]:
    """Why the practice cluster cannot run here, with the cures; empty: it can."""
    if sys.platform != "linux":
        return ["the practice cluster needs Linux: use a virtual machine of it"]
    packages, programs = [], []
    for package, names in PACKAGES.items():
        if absent := [
            name for name in names if not shutil.which(name, path=search_path())
        ]:
            packages.append(package)
            programs += absent
    if packages:
        return [
            f"this machine has no {', '.join(programs)}: `sudo apt-get install "
            f"--no-install-recommends {' '.join(packages)}`"
        ]
    return _forbidden_namespaces()


def search_path() -> str:
    """Daemons live in sbin, which the PATH of an ordinary user may lack."""
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def own_world() -> list[str]:
    """The start of a command that runs in a world of its own, as its PID 1."""
    user = ["--user", "--map-current-user", "--keep-caps"] if os.geteuid() else []
    world = "--net --mount --uts --ipc --pid --fork --kill-child --mount-proc"
    return ["unshare", *user, *world.split()]


def _forbidden_namespaces() -> list[str]:
    trial = "mount -t tmpfs none /dev/shm && ip link add br0 type bridge"
    done = subprocess.run(
        [*own_world(), "sh", "-c", trial],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": search_path(), "LC_ALL": "C"},
    )
    if done.returncode == 0:
        return []
    said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    whom = "namespaces to root" if os.geteuid() == 0 else "user namespaces"
    return [f"this machine forbids {whom} ({said}): {cure_for_namespaces()}"]


def cure_for_namespaces() -> str:
    """The option of this container or the setting in the way, or the way round it."""
    if of_container := containers.cure_for_namespaces(new_proc=True):
        return of_container
    if os.geteuid() == 0:
        return "use a virtual machine, or a container that may have namespaces"
    return cure_for_users()


def cure_for_users() -> str:
    """The setting that forbids users namespaces of their own, or the way round it."""
    for setting, needed in (
        ("kernel.unprivileged_userns_clone", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "0"),
    ):
        path = SETTINGS.joinpath(*setting.split("."))
        if path.exists() and path.read_text().strip() != needed:
            return f"`sudo sysctl -w {setting}={needed}`, or run as root"
    limit = SETTINGS / "user" / "max_user_namespaces"
    if limit.exists() and limit.read_text().strip() == "0":
        return "`sudo sysctl -w user.max_user_namespaces=10000`, or run as root"
    return "run as root, or in a virtual machine"
