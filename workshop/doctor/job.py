"""Why do the nodes of a job not connect? What ``workshop doctor --job`` finds.

It looks from every node of the allocation, because what is wrong differs between
them: a name that means something else there, an interface that another node has not.
Inside a Slurm or PBS job it starts itself on all nodes, by srun or pbsdsh. By hand, it
is started on each node, with the options that torchrun gets there.

The nodes leave what they see in a folder that all of them share; then the one that was
started first judges. Nothing here imports torch: it must answer within seconds.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from workshop.doctor.judge import judge
from workshop.doctor.nodes import MEETING, SETTINGS, Place, Report, look
from workshop.errors import UserError

START = 30.0  # seconds until srun or pbsdsh has started a program on all nodes


def place_from(endpoint: str, rdzv_id: str, nnodes: int) -> Place:
    """What the options say, else the environment as torchrun and ranks read it.

    Raises:
        UserError: no endpoint is given, or its port is not a port.
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
            "doctor --job: no endpoint: give --rdzv-endpoint HOST:PORT as you give it "
            "to torchrun, or set MASTER_ADDR and MASTER_PORT"
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
        UserError: the number of nodes is not given.
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
        root = Path(__file__).resolve().parents[2]
        start = "import sys; sys.path.insert(0, sys.argv[1]); "
        start += "from workshop.doctor.job import main; main(sys.argv[2])"
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
