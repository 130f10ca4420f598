"""Measure what a job gives its ranks, and train through a snapshot on its nodes.

    torchrun --standalone --nproc-per-node=2 src/instruments/08_prove_cluster.py
    SCRIPT=src/instruments/08_prove_cluster.py \\
        sbatch job_scripts/multinode_torchrun.sbatch

It takes the arguments that the job scripts give to their training program.
`workshop doctor --job --submit` submits it, waits, and says what is wrong.
"""

import importlib.metadata
import os
import platform
import resource
import shutil
import socket
import struct
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import (
    BadInput,
    Parser,
    describe_world,
    log,
    one_line_errors,
    output_file,
    positive_float,
    positive_int,
    seed_rank,
    settle_buckets,
    write_json,
)
from common.launchers import find_master, get_dist_env
from common.process_group import join
from common.snapshot import read_snapshot, write_snapshot

SHARED_MEMORY = Path("/dev/shm")
LIMITS = {  # what `ulimit` calls them
    "-l": resource.RLIMIT_MEMLOCK,
    "-n": resource.RLIMIT_NOFILE,
    "-u": resource.RLIMIT_NPROC,
}
SIZES = (4 * 2**10, 256 * 2**10, 4 * 2**20, 16 * 2**20)  # bytes of an all-reduce
REPEATS = 5
WRITTEN = 64 * 2**20  # bytes of the file whose writing is timed
PATIENCE = 20.0  # seconds for a file to appear on the other nodes
WIDTH = 64  # of the network
STEPS = 5  # of an epoch
SIOCGIFADDR = 0x8915  # Linux's request for the address of an interface
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Config:
    """The command line, which begins like that of the training programs."""

    total_epochs: int
    save_every: int  # epochs between two snapshots
    snapshot: Path
    report: Path | None  # a JSON file for the numbers
    submitted: float  # seconds since 1970; 0: not known


@dataclass
class Rank:
    """What one rank has got, on its node."""

    rank: int
    local_rank: int
    host: str
    device: str  # "cpu", or the accelerator's name
    uuid: str  # no two ranks of a node may have the same; "" on a CPU
    visible: str  # CUDA_VISIBLE_DEVICES; "" if it isn't set
    cores: list[int]  # of the node, that this rank may use
    shared_mb: float  # size of /dev/shm; 0 where there is none
    shared_free_mb: float
    limits: dict[str, int]  # of `ulimit`, by its option; -l in bytes; -1: unlimited
    versions: dict[str, str]
    address: str  # from which it talks to the first node
    interface: str
    interface_gbit: float  # what the interface announces; 0 if it doesn't
    infiniband: list[str]  # adapters of the node


def look(device: torch.device, local_rank: int) -> Rank:
    """What this rank finds on its node."""
    address, interface = find_interface(os.environ["MASTER_ADDR"])
    megabytes = shared_memory()
    name, uuid = "cpu", ""
    if device.type != "cpu":
        properties = torch.get_device_module(device).get_device_properties(device)
        name = properties.name
        uuid = str(getattr(properties, "uuid", device.index))
    return Rank(
        rank=dist.get_rank(),
        local_rank=local_rank,
        host=socket.gethostname(),
        device=name,
        uuid=uuid,
        visible=os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        cores=usable_cores(),
        shared_mb=megabytes[0],
        shared_free_mb=megabytes[1],
        limits={name: resource.getrlimit(limit)[0] for name, limit in LIMITS.items()},
        versions=versions(),
        address=address,
        interface=interface,
        interface_gbit=announced_gbit(interface),
        infiniband=names_in(Path("/sys/class/infiniband")),
    )


def usable_cores() -> list[int]:
    """The cores of the node that this process may use; macOS doesn't say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def shared_memory() -> tuple[float, float]:
    """(size, free) of /dev/shm in MB; zeros where there is none."""
    if not SHARED_MEMORY.is_dir():
        return 0.0, 0.0
    usage = shutil.disk_usage(SHARED_MEMORY)
    return usage.total / 1e6, usage.free / 1e6


def versions() -> dict[str, str]:
    """The versions that should be the same on all nodes."""
    nccl = UNKNOWN
    for found in importlib.metadata.distributions():
        if (found.metadata["Name"] or "").startswith("nvidia-nccl"):
            nccl = found.version
    return {
        "Python": platform.python_version(),
        "torch": str(torch.__version__),
        "CUDA of torch": str(torch.version.cuda),
        "NCCL": nccl,
        "kernel": platform.release(),
    }


def find_interface(first_node: str) -> tuple[str, str]:
    """(address, interface) by which this node reaches the first one."""
    try:
        found = socket.getaddrinfo(first_node, 9, socket.AF_INET, socket.SOCK_DGRAM)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(found[0][4])  # sends nothing, but chooses the way
            address = probe.getsockname()[0]
    except OSError:
        return UNKNOWN, UNKNOWN
    for _, name in socket.if_nameindex():
        if address_of(name) == address:
            return address, name
    return address, UNKNOWN


def address_of(interface: str) -> str:
    """The IPv4 address of an interface; "" without one, and where Linux isn't."""
    try:
        import fcntl

        request = struct.pack("256s", interface.encode()[:15])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, request)
    except OSError:
        return ""
    return socket.inet_ntoa(answer[20:24])


def announced_gbit(interface: str) -> float:
    """Gbit/s that an interface announces; 0 if it announces nothing."""
    try:
        megabit = int(Path(f"/sys/class/net/{interface}/speed").read_text())
    except (OSError, ValueError):
        return 0.0
    return max(megabit, 0) / 1e3


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def measure_links(ranks: list[Rank], device: torch.device) -> dict[str, dict]:
    """busbw by size inside the first node, and between the first ranks of all nodes.

    busbw is 2 (n - 1) / n times the bytes of the tensor, over the seconds: what each
    link carries, whatever the number n of ranks (see NVIDIA's nccl-tests).
    """
    by_host: dict[str, list[int]] = {}
    for rank in ranks:
        by_host.setdefault(rank.host, []).append(rank.rank)
    members = {
        "inside a node": max(by_host.values(), key=len),
        "between nodes": [on_host[0] for on_host in by_host.values()],
    }
    found = {}
    for name, chosen in members.items():
        group = dist.new_group(chosen)  # every rank must reach this line
        if len(chosen) > 1 and dist.get_rank() in chosen:
            found[name] = {size: busbw(size, group, device) for size in SIZES}
        dist.barrier()
    return found


def busbw(size: int, group: dist.ProcessGroup, device: torch.device) -> float:
    """Bytes per second of the fastest of some all-reduces of ``size`` bytes."""
    tensor = torch.ones(size // 4, device=device)
    seconds = []
    for _ in range(REPEATS + 1):  # the first connects
        dist.barrier(group)
        start = time.perf_counter()
        dist.all_reduce(tensor, group=group)
        if device.type != "cpu":
            torch.accelerator.synchronize()
        seconds.append(time.perf_counter() - start)
    ranks = dist.get_world_size(group)
    return 2 * (ranks - 1) / ranks * size / min(seconds[1:])


def share_a_file(folder: Path) -> float:
    """Seconds until this rank reads what rank 0 has written there; -1: never."""
    path = folder / "08_prove_cluster.shared"
    words = [str(time.time_ns())]
    dist.broadcast_object_list(words, src=0)
    if dist.get_rank() == 0:
        path.write_text(words[0])
    dist.barrier()
    start = time.monotonic()
    waited = 0.0
    while waited < PATIENCE:
        if path.exists() and path.read_text() == words[0]:
            break
        time.sleep(0.05)
        waited = time.monotonic() - start
    else:
        waited = -1.0
    dist.barrier()
    if dist.get_rank() == 0:
        path.unlink()
    return waited


def write_speed(folder: Path) -> float:
    """Bytes per second that rank 0 writes there, until they are on the disk."""
    speed = 0.0
    if dist.get_rank() == 0:
        path = folder / "08_prove_cluster.written"
        start = time.perf_counter()
        with open(path, "wb") as file:
            file.write(os.urandom(WRITTEN))
            file.flush()
            os.fsync(file.fileno())
        speed = WRITTEN / (time.perf_counter() - start)
        path.unlink()
    dist.barrier()
    return speed


class Training:
    """A small network in DDP that learns to give back its input."""

    def __init__(self, device: torch.device, seed: int):
        torch.manual_seed(seed)
        self.model = DDP(torch.nn.Linear(WIDTH, WIDTH).to(device))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        settle_buckets(self.model, torch.zeros(1, WIDTH, device=device))
        self.device, self.epoch = device, 0
        self.first_step = 0.0  # when it was done, in seconds since 1970

    def train(self, epochs: int) -> None:
        """Train on until ``epochs`` are done."""
        while self.epoch < epochs:
            seed_rank(0, self.epoch)
            for _ in range(STEPS):
                x = torch.randn(8, WIDTH).to(self.device)
                loss = (self.model(x) - x).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.first_step = self.first_step or time.time()
            self.epoch += 1

    def state_dict(self) -> dict:
        model, optimizer = self.model.state_dict(), self.optimizer.state_dict()
        return {"model": model, "optimizer": optimizer, "epochs_run": self.epoch}

    def load_state_dict(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch = state["epochs_run"]

    def parameters(self) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in self.model.parameters()]).cpu()


def train_and_resume(
    device: torch.device, epochs: int, saved_after: int, path: Path
) -> tuple[float, str]:
    """Train through; then train again, from the snapshot.

    Returns:
        (when the first step was done, in seconds since 1970; what is wrong on this
        rank with what was resumed, or "")
    """
    through = Training(device, seed=0)
    through.train(saved_after)
    if dist.get_rank() == 0:
        write_snapshot(through.state_dict(), path)
    dist.barrier()
    through.train(epochs)
    resumed = Training(device, seed=1)
    wrong = ""
    try:
        resumed.load_state_dict(read_snapshot(path))
    except BadInput as error:
        wrong = str(error)
    if any(everyone(wrong)):  # or those that go on would wait for those that don't
        return through.first_step, wrong
    resumed.train(epochs)
    difference = (resumed.parameters() - through.parameters()).abs().max().item()
    if difference:
        wrong = f"resumed parameters differ by up to {difference:.1e}"
    return through.first_step, wrong


def everyone(value) -> list:
    """The value of each rank, on every rank."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def prove(config: Config, device: torch.device, local_rank: int) -> dict:
    """All measurements, on every rank; keys as in the file that --report writes."""
    ranks = everyone(look(device, local_rank))
    folder = config.snapshot.parent
    log(f"proving {describe_world(device)}")
    links = {}
    for found in everyone(measure_links(ranks, device)):
        links.update(found)
    shared = everyone(share_a_file(folder))
    written = everyone(write_speed(folder))[0]
    saved_after = min(config.save_every, config.total_epochs)
    first_step, wrong = train_and_resume(
        device, config.total_epochs, saved_after, config.snapshot
    )
    started = 0.0
    if config.submitted:
        started = max(everyone(first_step)) - config.submitted
    return {
        "ranks": [asdict(rank) for rank in ranks],
        "backend": dist.get_backend(),
        "busbw": links,
        "folder": str(folder),
        "seen_after": shared,
        "write_speed": written,
        "resumed": everyone(wrong),
        "first_step_after": started,
    }


def as_ranges(cores: list[int]) -> str:
    """The cores that a rank is bound to, as taskset writes them: ``0-3,8``."""
    ranges: list[list[int]] = []
    for core in cores:
        if ranges and core == ranges[-1][1] + 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    ends = (sorted({first, last}) for first, last in ranges)
    return ",".join("-".join(map(str, each)) for each in ends)


def as_ulimit(option: str, limit: int) -> str:
    """A limit as the shell's `ulimit` shows it: memory in KB."""
    if limit == resource.RLIM_INFINITY:
        return f"{option} unlimited"
    if option == "-l":
        limit //= 1024
    return f"{option} {limit}"


def show(report: dict) -> None:
    """Print the measurements as a page."""
    show_ranks(report["ranks"])
    show_hosts([rank for rank in report["ranks"] if rank["local_rank"] == 0])
    show_speed(report)
    show_folder(report)
    if report["first_step_after"]:
        log(f"first step {report['first_step_after']:.1f} s after the submission")


def show_ranks(ranks: list[dict]) -> None:
    """Where each rank runs, and on which device."""
    log("rank  host             device           cores       address (interface)")
    for rank in ranks:
        where = f"{rank['address']} ({rank['interface']})"
        log(
            f"{rank['rank']:>4}  {rank['host']:<16} {rank['device']:<16} "
            f"{as_ranges(rank['cores']):<10}  {where}"
        )
        if rank["uuid"]:
            visible = rank["visible"] or "not set"
            log(f"      {rank['uuid']}, CUDA_VISIBLE_DEVICES {visible}")


def show_hosts(first_ranks: list[dict]) -> None:
    """Limits and versions, as the first rank of each host sees them."""
    for rank in first_ranks:
        limits = "  ".join(as_ulimit(*item) for item in rank["limits"].items())
        log(
            f"{rank['host']}: /dev/shm {rank['shared_free_mb']:,.0f} of "
            f"{rank['shared_mb']:,.0f} MB free; ulimit {limits}"
        )
        log("  " + ", ".join(f"{n} {v}" for n, v in rank["versions"].items()))


def show_speed(report: dict) -> None:
    """What was measured, beside what the interface announces."""
    for name, rates in report["busbw"].items():
        shown = [f"{size // 1024:,} KiB {r / 1e9:.3f}" for size, r in rates.items()]
        log(f"busbw {name}, GB/s: {'; '.join(shown)}")
    announced = report["ranks"][0]["interface_gbit"]
    if announced:
        name = report["ranks"][0]["interface"]
        log(f"{name} announces {announced:g} Gbit/s, which is {announced / 8:.3f} GB/s")


def show_folder(report: dict) -> None:
    """What the folder of the snapshots is good for."""
    log(f"{report['folder']}: written with {report['write_speed'] / 1e6:.0f} MB/s")
    late = max(report["seen_after"])
    if min(report["seen_after"]) < 0:
        log("a file that rank 0 writes there is not seen by every rank")
    else:
        log(
            f"a file that rank 0 writes there is seen by every rank within {late:.1f} s"
        )
    wrong = [why for why in report["resumed"] if why]
    if wrong:
        log(wrong[0])
    else:
        log("resumed from a snapshot: the same parameters")


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("total_epochs", nargs="?", type=positive_int, default=4)
    parser.add_argument("save_every", nargs="?", type=positive_int, default=2)
    default = Path("08_prove_cluster.pt")
    parser.add_argument("--snapshot", type=output_file, default=default)
    parser.add_argument(
        "--report", type=output_file, help="a JSON file for the numbers"
    )
    when = "seconds since 1970: when the job was submitted"
    parser.add_argument("--submitted", type=positive_float, default=0.0, help=when)
    config = Config(**vars(parser.parse_args()))
    env = get_dist_env()
    master = find_master(env)
    os.environ["MASTER_ADDR"] = master.address
    os.environ["MASTER_PORT"] = str(master.port)
    # every rank must reach this line
    device = join(env.local_rank, rank=env.rank, world_size=env.world_size)
    report = prove(config, device, env.local_rank)
    show(report)
    write_json(config.report, report)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
