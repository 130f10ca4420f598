"""Why do the nodes of a job not meet? What ``workshop doctor --job`` finds.

It looks from every node of the allocation, because what is wrong differs between
them: a name that means something else there, an interface that another node has not.
Inside a Slurm or PBS job it starts itself on all nodes, by srun or pbsdsh. By hand, it
is started on each node, with the options that torchrun gets there.

The nodes leave what they see in a folder that all of them share; then whoever was
started first judges. Nothing here imports torch: it must answer within seconds.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import ipaddress
import json
import os
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from grader.errors import UserError

MEETING = 8.0  # seconds in which the nodes try to reach each other
START = 30.0  # seconds until srun or pbsdsh has started a program on all nodes
DEFAULT_PORT = 29400  # of torchrun, where the endpoint names none
GREETING = b"workshop doctor\n"
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
SETTINGS = re.compile(r"(GLOO|NCCL|TORCH|OMP|CUDA)_\w+")
# These may well differ, or the launcher of this command has set them.
OWN = ("CUDA_VISIBLE_DEVICES",)


@dataclass(frozen=True)
class Place:
    """Where the nodes were told to meet. ``endpoint`` is HOST or HOST:PORT."""

    endpoint: str
    rdzv_id: str = ""
    nnodes: int = 0  # 0: not said

    @property
    def host(self) -> str:
        host = self.endpoint
        if re.fullmatch(r"\[.*\](:\d+)?|[^:]*:\d*", host):
            host = host.rpartition(":")[0] if not host.endswith("]") else host
        return host.strip("[]")

    @property
    def port(self) -> int:
        match = re.fullmatch(r"(?:\[.*\]|[^:]*):(\d+)", self.endpoint)
        return int(match[1]) if match else DEFAULT_PORT


@dataclass
class Report:
    """What one node sees.

    ``addresses``: of each name that was looked up, [] if it is unknown there.
    ``port``: what came of the port of the meeting place, see :func:`try_port`.
    """

    host: str
    place: Place
    addresses: dict[str, list[str]]
    interfaces: dict[str, str]
    owns: bool
    port: str
    versions: dict[str, str]
    settings: dict[str, str] = field(default_factory=dict)


# Looking, on each node


def look(
    place: Place, hosts: list[str], nnodes: int, patience: float = MEETING
) -> Report:
    """What this node sees; ``hosts``: the names of all nodes, as far as known."""
    own = socket.gethostname()
    names = dict.fromkeys([place.host, own, *hosts])
    addresses = {name: resolve(name) for name in names if name}
    mine = {*interfaces().values(), *(a for a in addresses[own] if is_loopback(a))}
    there = addresses.get(place.host, [])
    owns = any(address in mine or is_loopback(address) for address in there)
    return Report(
        host=own,
        place=place,
        addresses=addresses,
        interfaces=interfaces(),
        owns=owns,
        port=try_port(place, owns, nnodes, patience) if there else "",
        versions=versions(),
        settings={
            name: value
            for name, value in sorted(os.environ.items())
            if SETTINGS.fullmatch(name) and name not in OWN
        },
    )


def resolve(name: str) -> list[str]:
    """The addresses that this node knows under a name."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def interfaces() -> dict[str, str]:
    """The IPv4 address of each network interface; "" if it has none."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), 0x8915, request)  # SIOCGIFADDR
                found[name] = socket.inet_ntoa(answer[20:24])
            except OSError:
                found[name] = ""
    return found


def versions() -> dict[str, str]:
    """The programs whose versions should be the same on all nodes."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = "missing"
    return {
        "Python": platform.python_version(),
        "torch": torch,
        "the environment": sys.prefix,
    }


def try_port(place: Place, owns: bool, nnodes: int, patience: float) -> str:
    """Listen where the nodes are to meet, or go there.

    Returns:
        On the node that has the address: "free" or "taken". On the others: "reached",
        "other" if another program answered, "refused", "silent", or "unreachable".
    """
    if owns:
        return _listen(place.port, nnodes - 1, patience)
    return _connect(place.host, place.port, patience)


def _listen(port: int, others: int, patience: float) -> str:
    end = time.monotonic() + patience
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
            listener.listen()
        except OSError:
            return "taken"
        while others > 0 and (left := end - time.monotonic()) > 0:
            listener.settimeout(left)
            with contextlib.suppress(OSError):
                guest, _ = listener.accept()
                with guest:
                    guest.sendall(GREETING)
                others -= 1
    return "free"


def _connect(host: str, port: int, patience: float) -> str:
    end, found = time.monotonic() + patience - 1, "silent"
    while (left := end - time.monotonic()) > 0:
        try:
            with socket.create_connection((host, port), left) as guest:
                guest.settimeout(2)
                return "reached" if guest.recv(64) == GREETING else "other"
        except ConnectionRefusedError:  # the other node may not listen yet
            found = "refused"
            time.sleep(0.1)
        except (TimeoutError, ConnectionResetError):
            found = "other" if found == "other" else "silent"
        except OSError:
            found = "unreachable"
            time.sleep(0.1)
    return found


# Judging


def judge(reports: list[Report], nnodes: int) -> list[str]:
    """One line for each thing that is wrong, with its cure."""
    reports = sorted(reports, key=lambda report: report.host)
    findings = [*_told(reports), *_place(reports, nnodes)]
    findings += [*_names(reports), *_interfaces(reports), *_same(reports)]
    if len(reports) < nnodes:
        seen = ", ".join(report.host for report in reports) or "none"
        findings.insert(
            0,
            f"only {len(reports)} of {nnodes} nodes answered ({seen}): is every node "
            "up, and do all share this folder?",
        )
    return findings


def _by_value(values: dict[str, str]) -> str:
    """``1 on n1, n3; 2 on n2``"""
    groups: dict[str, list[str]] = {}
    for host, value in values.items():
        groups.setdefault(value, []).append(host)
    return "; ".join(
        f"{value or 'nothing'} on {', '.join(hosts)}" for value, hosts in groups.items()
    )


def _told(reports: list[Report]) -> list[str]:
    """Were all nodes told the same?"""
    findings = []
    for what, get, cure in (
        (
            "meeting place",
            lambda place: place.endpoint,
            "one host for all, found once, before the nodes are started",
        ),
        ("rendezvous id", lambda place: place.rdzv_id, "one for all: the job's number"),
        ("number of nodes", lambda place: str(place.nnodes or ""), "one for all"),
    ):
        values = {report.host: get(report.place) for report in reports}
        if len(set(values.values())) > 1:
            findings.append(f"the {what} differs, {_by_value(values)}: give {cure}")
    return findings


def _place(reports: list[Report], nnodes: int) -> list[str]:
    """Is the meeting place one node, and can all others reach its port?"""
    findings, unknown, loop = [], [], []
    for report in reports:
        there = report.addresses.get(report.place.host, [])
        if not there:
            unknown.append(report)
        elif nnodes > 1 and all(map(is_loopback, there)):
            loop.append(report)
    for report in unknown:
        findings.append(
            f"{report.host} does not know the host {report.place.host!r} of the "
            "meeting place: give the address of the first node instead of its name"
        )
    if loop:
        names = _by_value({report.host: report.place.host for report in loop})
        findings.append(
            f"the meeting place is the node itself ({names}): every node waits alone; "
            "name the first node as the others know it"
        )
    usable = [report for report in reports if report not in unknown + loop]
    if usable and not any(report.owns for report in usable):
        findings.append(
            f"no node of this job has the address of {usable[0].place.host}: name one "
            "of its nodes, the agent there opens the port"
        )
        return findings
    taken = [report for report in usable if report.port == "taken"]
    # what the others then see at the port is no finding of its own
    return findings + [line for report in taken or usable for line in _port(report)]


def _port(report: Report) -> list[str]:
    where = f"{report.place.host}:{report.place.port}"
    said = {
        "taken": f"port {report.place.port} is taken on {report.host}: choose another, "
        "derived from the job's number",
        "other": f"another program answers {report.host} at {where}: choose another "
        "port, derived from the job's number",
        "refused": f"{report.host} is refused at {where}: the port is closed by a "
        "firewall, or taken on that address",
        "silent": f"{report.host} gets no answer from {where}: a firewall is between, "
        "or the address belongs to a network that this node cannot use; try another "
        "port, or the first node's name on another interface",
        "unreachable": f"{report.host} has no way to {where}: use an address in a "
        "network that all nodes are on",
    }
    return [said[report.port]] if report.port in said else []


def _names(reports: list[Report]) -> list[str]:
    """Do the nodes know each other's names, and do not take themselves for 127.0.*?"""
    findings = []
    for report in reports:
        for name, addresses in report.addresses.items():
            if not addresses and name != report.place.host:
                findings.append(
                    f"{report.host} does not know the host {name}: torchrun tells "
                    "ranks the name of the first node; add it to DNS or /etc/hosts, or "
                    "start torchrun with --local-addr=ADDRESS"
                )
        chosen = report.settings.get("GLOO_SOCKET_IFNAME")
        own = report.addresses.get(report.host, [])
        if own and all(map(is_loopback, own)) and not chosen and len(reports) > 1:
            findings.append(
                f"{report.host} takes its own name for {own[0]}, where no other node "
                "reaches it, and gloo listens there: set GLOO_SOCKET_IFNAME"
            )
    return findings


def _interfaces(reports: list[Report]) -> list[str]:
    """Does the chosen interface exist, and does it lead to the others?"""
    findings = []
    for report in reports:
        for variable in INTERFACES:
            chosen = report.settings.get(variable, "")
            # NCCL takes prefixes, =names and ^names; only what is surely wrong is said
            names = [name for name in chosen.lstrip("=").split(",") if name]
            if not names or chosen.startswith("^"):
                continue
            prefix = variable.startswith("NCCL") and not chosen.startswith("=")
            found = [
                there
                for there in report.interfaces
                if there in names or (prefix and there.startswith(tuple(names)))
            ]
            have = ", ".join(n for n, a in report.interfaces.items() if a != "")
            if not found:
                findings.append(
                    f"{report.host} has no interface {chosen} ({variable}): it has "
                    f"{have}"
                )
            elif len(reports) > 1 and all(
                is_loopback(report.interfaces[name] or "127.0.0.1")
                and report.interfaces[name]
                for name in found
            ):
                findings.append(
                    f"{variable}={chosen} on {report.host} leads to the node itself: "
                    f"choose one that leads to the others; it has {have}"
                )
            elif not any(report.interfaces[name] for name in found):
                findings.append(
                    f"the interface {chosen} of {report.host} ({variable}) has no "
                    f"address: choose another; it has {have}"
                )
    return findings


def _same(reports: list[Report]) -> list[str]:
    """Programs and settings that should not differ between the nodes."""
    findings = []
    for what in dict.fromkeys(name for report in reports for name in report.versions):
        values = {report.host: report.versions.get(what, "") for report in reports}
        if len(set(values.values())) > 1 or "missing" in values.values():
            findings.append(
                f"{what}: {_by_value(values)}: activate the same environment on every "
                "node"
            )
    for what in dict.fromkeys(name for report in reports for name in report.settings):
        values = {report.host: report.settings.get(what, "") for report in reports}
        if len(set(values.values())) > 1 and what not in INTERFACES:
            findings.append(f"{what} differs, {_by_value(values)}: set it on all nodes")
    return findings


# Running it on all nodes


def place_from(endpoint: str, rdzv_id: str, nnodes: int) -> Place:
    """What the options say, else the environment as torchrun and ranks read it.

    Raises:
        UserError: no meeting place is named, or the port is none.
    """
    environ = os.environ
    if not endpoint:
        endpoint = environ.get("PET_RDZV_ENDPOINT", "")
        if not endpoint and environ.get("MASTER_ADDR"):
            endpoint = ":".join(
                filter(None, [environ["MASTER_ADDR"], environ.get("MASTER_PORT")])
            )
    if not endpoint:
        raise UserError(
            "doctor --job: where do the nodes meet? Give --rdzv-endpoint HOST:PORT as "
            "torchrun gets it, or set MASTER_ADDR and MASTER_PORT"
        )
    place = Place(endpoint, rdzv_id or environ.get("PET_RDZV_ID", ""), nnodes)
    if not place.host or not 1 <= place.port <= 65535 or re.search(r"\s", endpoint):
        raise UserError(
            f"doctor --job: {endpoint!r} is no HOST:PORT, with a port of 1 to 65535"
        )
    return place


def examine(place: Place) -> tuple[list[str], list[str]]:
    """(findings, names of the nodes that answered), from all nodes of the job.

    Raises:
        UserError: nobody says how many nodes there are.
    """
    environ = os.environ
    in_step = environ.get("SLURM_STEP_ID", "4294967290") != "4294967290"
    if "SLURM_JOB_ID" in environ and not in_step and shutil.which("srun"):
        hosts = _lines(["scontrol", "show", "hostnames"])
        each = ["srun", f"--nodes={len(hosts)}", f"--ntasks={len(hosts)}"]
        return _everywhere([[*each, "--ntasks-per-node=1"]], place, hosts)
    node_file = Path(environ.get("PBS_NODEFILE") or "/nowhere")
    if node_file.is_file() and shutil.which("pbsdsh"):
        lines = node_file.read_text().split()
        hosts = list(dict.fromkeys(lines))
        # a host has a line for each of its MPI processes: start one task on each
        first = [lines.index(host) for host in hosts]
        starts = [["pbsdsh", "-n", str(line), "--", *_libraries()] for line in first]
        return _everywhere(starts, place, hosts)
    nnodes = place.nnodes or int(environ.get("SLURM_NNODES", 0))
    if not nnodes:
        raise UserError(
            "doctor --job: this is no Slurm or PBS job: start it on each node, with "
            "--nnodes N and the --rdzv-endpoint and --rdzv-id that torchrun gets there"
        )
    return _by_hand(place, nnodes)


def _libraries() -> list[str]:
    """The start of a command whose program finds its libraries in a bare environment.

    A Python from `module load` may need them to start at all.
    """
    found = os.environ.get("LD_LIBRARY_PATH")
    return ["/usr/bin/env", f"LD_LIBRARY_PATH={found}"] if found else []


def _lines(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=START)
    if done.returncode or not done.stdout.split():
        raise UserError(f"doctor --job: {command[0]} failed: {done.stderr.strip()}")
    return done.stdout.split()


def _everywhere(
    starts: list[list[str]], place: Place, hosts: list[str]
) -> tuple[list[str], list[str]]:
    """Start :func:`main` on every node by ``starts``, and read what they left."""
    shared = Path.cwd() / ".workshop"
    shared.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="job-", dir=shared) as folder:
        # pbsdsh starts its tasks without this environment, and in another folder
        settings = {n: v for n, v in os.environ.items() if SETTINGS.fullmatch(n)}
        order = Path(folder) / "order.json"
        told = [asdict(place), hosts, len(hosts), settings]
        order.write_text(json.dumps(told))
        root = Path(__file__).resolve().parents[3]
        start = "import sys; sys.path.insert(0, sys.argv[1]); "
        start += "from grader.commands.doctor.job import main; main(sys.argv[2])"
        command = [sys.executable, "-c", start, str(root), folder]
        _run_all([[*each, *command] for each in starts])
        reports = _read(Path(folder))
    return judge(reports, len(hosts)), [report.host for report in reports]


def _run_all(commands: list[list[str]]) -> None:
    """Run the commands side by side; who hangs is ended, and leaves no report."""
    no = subprocess.DEVNULL
    running = [
        subprocess.Popen(command, stdin=no, stdout=no, stderr=no)
        for command in commands
    ]
    end = time.monotonic() + START + MEETING
    for process in running:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(folder: str) -> None:
    """One node's part, started by :func:`_everywhere`."""
    place, hosts, nnodes, settings = json.loads(
        (Path(folder) / "order.json").read_text()
    )
    os.environ.update({**settings, **os.environ})
    _write(Path(folder), look(Place(**place), hosts, nnodes))


def _by_hand(place: Place, nnodes: int) -> tuple[list[str], list[str]]:
    """This node's part; then wait for what the others leave in the same folder."""
    folder = Path.cwd() / ".workshop" / "job_doctor"
    folder.mkdir(parents=True, exist_ok=True)
    own = folder / f"{socket.gethostname()}.json"
    own.unlink(missing_ok=True)  # of an earlier time
    started = time.time()
    _write(folder, look(place, [], nnodes, patience=START))
    end = time.monotonic() + START
    while True:
        reports = _read(folder, newer_than=started - START)
        if len(reports) >= nnodes or time.monotonic() > end:
            return judge(reports, nnodes), [report.host for report in reports]
        time.sleep(0.2)


def _write(folder: Path, report: Report) -> None:
    partial = folder / f".{report.host}"
    partial.write_text(json.dumps(asdict(report)))
    partial.replace(folder / f"{report.host}.json")


def _read(folder: Path, newer_than: float = 0.0) -> list[Report]:
    reports = []
    for path in sorted(folder.glob("*.json")):
        if path.name != "order.json" and path.stat().st_mtime >= newer_than:
            facts = json.loads(path.read_text())
            reports.append(Report(**{**facts, "place": Place(**facts["place"])}))
    return reports
