"""What a cluster may be, and the files its programs read.

Those are slurm.conf, gres.conf, hosts and munge's key. All of it lies in the state
directory, the only place the cluster writes to.
"""

import os
import pwd
import re
from pathlib import Path

from workshop.cluster.nodes.errors import ClusterError
from workshop.cluster.nodes.state import FOLDERS, Size

NETWORK = "10.77.0"  # of each cluster's own: clusters side by side do not meet
LOGIN = "login"
SLURMCTLD_PORT = 6817

SLURM_CONF = """\
ClusterName=practice
SlurmctldHost=login({login_address})
SlurmctldPort={port}
# The caller runs everything, root or not.
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# cred_expire is also how long a requeued job waits; its default is two minutes.
AuthInfo=socket={state}/munge/sock,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation={state}/slurmctld
SlurmdSpoolDir={state}/spool/%n
SlurmctldPidFile={state}/slurmctld/pid
SlurmdPidFile={state}/spool/%n.pid
SlurmctldLogFile={state}/log/slurmctld.log
SlurmdLogFile={state}/log/slurmd.%n.log
# None of these needs control groups or a database.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc={state}/log/jobs.txt
# A node that is gone is missed after 10 to 20 seconds instead of minutes.
SlurmctldTimeout=10
SlurmdTimeout=10
MessageTimeout=5
TCPTimeout=2
KillWait=5
ReturnToService=2
WaitTime=0
InactiveLimit=0
JobRequeue=1
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
# Nodes may claim more CPUs and memory than this machine has.
SlurmdParameters=config_overrides
{gres_types}
NodeName={names} NodeAddr={addresses} CPUs={cpus} RealMemory={memory_mb} {gres} \
State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def node_names(nodes: int) -> list[str]:
    return [f"n{number}" for number in range(1, nodes + 1)]


def address(host: str) -> str:
    """10.77.0.1 of the login host, 10.77.0.11 of n1, 10.77.0.12 of n2 ..."""
    return f"{NETWORK}.1" if host == LOGIN else f"{NETWORK}.{10 + int(host[1:])}"


def user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container may run as a user that has no name
        return str(os.geteuid())


def check_size(size: Size) -> None:
    """Refuse numbers that Slurm or this network cannot take."""
    limits = {
        "nodes": (1, 64),
        "cpus": (1, 1024),
        "gpus": (0, 64),
        "memory_mb": (100, 100_000_000),
    }
    for name, (least, most) in limits.items():
        asked = getattr(size, name)
        if not least <= asked <= most:
            raise ClusterError(f"{name} must be {least} to {most}, not {asked}")


def check_rate(rate: str) -> None:
    """Refuse what is no rate of a cable."""
    if not re.fullmatch(r"[1-9]\d*(\.\d+)?[kmg]bit", rate):
        raise ClusterError(
            f"{rate!r} is no rate: write it like 1gbit, 100mbit or 500kbit, or off"
        )


def seconds_of(delay: str) -> float:
    """The seconds of "1ms" or "100us"."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s)", delay)
    unit = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
    seconds = float(match[1]) * unit[match[2]] if match else 0.0
    if not 0 < seconds <= 10:
        raise ClusterError(
            f"{delay!r} is no delay: write it like 1ms, 0.5ms or 100us (at most "
            "10s), or off"
        )
    return seconds


def write_files(state: Path, size: Size) -> None:
    """Fill the empty state directory."""
    for folder in FOLDERS:
        (state / folder).mkdir(mode=0o700)
    range_of_names = f"[1-{size.nodes}]" if size.nodes > 1 else "1"
    last_octets = f"[11-{10 + size.nodes}]" if size.nodes > 1 else "11"
    gres_types, gres = "", ""
    if size.gpus:
        gres_types, gres = "GresTypes=gpu", f"Gres=gpu:{size.gpus}"
    text = SLURM_CONF.format(
        state=state,
        user=user_name(),
        port=SLURMCTLD_PORT,
        login_address=address(LOGIN),
        names=f"n{range_of_names}",
        addresses=f"{NETWORK}.{last_octets}",
        cpus=size.cpus,
        memory_mb=size.memory_mb,
        gres_types=gres_types,
        gres=gres,
    )
    (state / "slurm" / "slurm.conf").write_text(text)
    (state / "slurm" / "gres.conf").write_text(_gpus(state / "gpus", size.gpus))
    _write_names(state / "hosts", node_names(size.nodes))
    key = os.open(state / "munge" / "key", os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(key, os.urandom(128))
    os.close(key)


def _gpus(folder: Path, gpus: int) -> str:
    """Slurm hands out only device files as GPUs: links to /dev/null pass for some."""
    for number in range(gpus):
        (folder / f"nvidia{number}").symlink_to("/dev/null")
    devices = f"[0-{gpus - 1}]" if gpus > 1 else "0"
    return f"Name=gpu File={folder}/nvidia{devices}\n" if gpus else ""


def _write_names(folder: Path, nodes: list[str]) -> None:
    """/etc/hosts, /etc/nsswitch.conf and each host's /etc/hostname."""
    hosts = [LOGIN, *nodes]
    lines = ["127.0.0.1 localhost", *(f"{address(host)} {host}" for host in hosts)]
    (folder / "hosts").write_text("\n".join(lines) + "\n")
    (folder / "nsswitch.conf").write_text(names_from_files())
    for host in hosts:
        (folder / host).write_text(f"{host}\n")


def names_from_files() -> str:
    """This machine's /etc/nsswitch.conf, but hosts come from /etc/hosts alone.

    Without a route to a DNS server, each look-up of another name or of an IPv6 address
    would wait for seconds, or fail.
    """
    switch = Path("/etc/nsswitch.conf")
    text = switch.read_text() if switch.exists() else "passwd: files\ngroup: files\n"
    return re.sub(r"(?m)^hosts:.*\n?", "", text) + "\nhosts: files\n"
