"""What is wrong with a cluster, from what 08_prove_cluster.py measured in a job."""

from __future__ import annotations

from workshop.doctor.judge import by_value

SHARED_MB = 256  # of /dev/shm: workers of a DataLoader pass their batches through it
SHARED_FREE_MB = 64
OPEN_FILES = 1024  # a rank opens a file for each connection, worker and snapshot
PROCESSES = 1024  # of a user on a node: ranks, their threads and workers
LOCKED_BYTES = 64 * 2**20  # NCCL registers buffers with an InfiniBand adapter
LINK_SHARE = 0.02  # of what an interface announces; gloo reaches a tenth and more
SEEN_AFTER = 2.0  # seconds: later, a rank may read an old snapshot
WRITE_SPEED = 10e6  # bytes per second
UNLIMITED = -1


def judge(report: dict) -> list[str]:
    """One line for each thing that is wrong in the program's report, with its cure."""
    ranks = report["ranks"]
    hosts = dict.fromkeys(rank["host"] for rank in ranks)
    findings = _devices(ranks) + _cores(ranks)
    for host in hosts:
        first = next(rank for rank in ranks if rank["host"] == host)
        findings += _node(first)
    findings += _same(ranks)
    findings += _links(report)
    findings += _disk(report)
    findings += _resumed(report)
    return findings


def _devices(ranks: list[dict]) -> list[str]:
    findings = []
    seen: dict[tuple[str, str], int] = {}
    for rank in ranks:
        key = (rank["host"], rank["uuid"])
        if rank["uuid"] and key in seen:
            findings.append(
                f"ranks {seen[key]} and {rank['rank']} on {rank['host']} use the same "
                f"{rank['device']} (CUDA_VISIBLE_DEVICES={rank['visible']}): give "
                "torchrun as many ranks as a node has GPUs"
            )
        seen.setdefault(key, rank["rank"])
    kinds = {f"rank {rank['rank']}": rank["device"] for rank in ranks}
    if len(set(kinds.values())) > 1:
        findings.append(
            f"the ranks have different devices, {by_value(kinds)}: ask for one kind of "
            "node"
        )
    return findings


def _cores(ranks: list[dict]) -> list[str]:
    """Has each rank a core of its own?"""
    findings = []
    for host in dict.fromkeys(rank["host"] for rank in ranks):
        here = [rank for rank in ranks if rank["host"] == host]
        cores = {core for rank in here for core in rank["cores"]}
        if len(cores) < len(here):
            findings.append(
                f"{len(here)} ranks share {len(cores)} core(s) on {host}: ask for more "
                "(Slurm: --cpus-per-task, PBS: ncpus)"
            )
    return findings


def _node(rank: dict) -> list[str]:
    """/dev/shm and limits, which are the same for all ranks of a node."""
    findings = []
    host = rank["host"]
    size, free = rank["shared_mb"], rank["shared_free_mb"]
    if size < SHARED_MB:
        findings.append(
            f"/dev/shm of {host} has {size:.0f} MB: a DataLoader with workers needs "
            "more; ask the support, or start a container with --shm-size=1g"
        )
    elif free < SHARED_FREE_MB:
        findings.append(
            f"/dev/shm of {host} is full ({free:.0f} of {size:.0f} MB free): remove "
            "what ended jobs have left there"
        )
    least = {"-n": (OPEN_FILES, "open files"), "-u": (PROCESSES, "processes")}
    for option, (needed, what) in least.items():
        limit = rank["limits"][option]
        if limit != UNLIMITED and limit < needed:
            findings.append(
                f"{host} allows {limit} {what} (ulimit {option}): raise it to {needed} "
                "at least in the job script, or ask the support"
            )
    locked = rank["limits"]["-l"]
    uses_adapter = rank["infiniband"] and rank["uuid"]
    if uses_adapter and locked != UNLIMITED and locked < LOCKED_BYTES:
        findings.append(
            f"{host} lets a process lock {locked // 1024} KB of memory (ulimit -l): "
            f"NCCL needs more for {rank['infiniband'][0]}: the support must set it to "
            "unlimited for jobs"
        )
    return findings


def _same(ranks: list[dict]) -> list[str]:
    """Versions that differ between the nodes."""
    findings = []
    for what in ranks[0]["versions"]:
        values = {rank["host"]: rank["versions"][what] for rank in ranks}
        if len(set(values.values())) > 1:
            findings.append(
                f"{what}: {by_value(values)}: activate the same environment on every "
                "node, or ask for one kind of node"
            )
    return findings


def _links(report: dict) -> list[str]:
    findings = []
    ranks = report["ranks"]
    several = len({rank["host"] for rank in ranks}) > 1
    for rank in ranks:
        if several and rank["local_rank"] == 0 and rank["address"].startswith("127."):
            findings.append(
                f"{rank['host']} reaches the first node by {rank['address']}, which is "
                "itself: name the first node by an address that all nodes share"
            )
    between = report["busbw"].get("between nodes", {})
    announced = min(rank["interface_gbit"] for rank in ranks) * 1e9 / 8
    # NCCL may use other adapters than the interface of the addresses
    if between and announced and report["backend"] == "gloo":
        # A buffer on the way can swallow a small message, and the link looks fast.
        largest = max(between, key=int)
        carried = between[largest]
        if carried < LINK_SHARE * announced:
            name = ranks[0]["interface"]
            findings.append(
                f"the link between the nodes carries {carried / 1e9:.3f} GB/s, and "
                f"{name} announces {announced / 1e9:.2f}: look for a faster interface "
                "(workshop site --set INTERFACE=NAME), or ask the support"
            )
    return findings


def _disk(report: dict) -> list[str]:
    folder = report["folder"]
    hosts: dict[str, float] = {}
    for rank, seen in zip(report["ranks"], report["seen_after"], strict=True):
        hosts.setdefault(rank["host"], seen)
    findings = []
    blind = [host for host, seen in hosts.items() if seen < 0]
    late = [host for host, seen in hosts.items() if seen > SEEN_AFTER]
    if blind:
        findings.append(
            f"{', '.join(blind)} can't see what {report['ranks'][0]['host']} writes in "
            f"{folder}: run jobs in a folder that all nodes share"
        )
    if late:
        longest = max(hosts[host] for host in late)
        findings.append(
            f"{', '.join(late)} see a file in {folder} only after {longest:.0f} s: a "
            "rank that resumes at once may read the snapshot before it"
        )
    if report["write_speed"] < WRITE_SPEED:
        findings.append(
            f"{folder} takes {report['write_speed'] / 1e6:.1f} MB/s: write snapshots "
            "to a faster file system"
        )
    return findings


def _resumed(report: dict) -> list[str]:
    wrong: dict[str, list[str]] = {}
    for rank, why in zip(report["ranks"], report["resumed"], strict=True):
        if why:
            wrong.setdefault(why, []).append(str(rank["rank"]))
    return [
        f"the snapshot does not resume on rank {', '.join(ranks)}: {why}"
        for why, ranks in wrong.items()
    ]
