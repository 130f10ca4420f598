"""The state directory: whose it is, which cluster it belongs to, whether that lives."""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from workshop.cluster.nodes.errors import ClusterError

FOLDERS = ("munge", "log", "spool", "slurmctld", "hosts", "gpus", "slurm")
FILES = ("cluster.json", "cluster.json.tmp", "control", "bashrc")
LONGEST_PATH = 70  # letters: UNIX sockets allow 107, Slurm's names in there up to 37


@dataclass(frozen=True)
class Size:
    """What the last ``up`` asked for: nodes, and what each of them claims to have."""

    nodes: int
    cpus: int
    gpus: int
    memory_mb: int


@dataclass(frozen=True)
class Process:
    """What tells a process from any other that ever had its number."""

    pid: int
    started: str  # in clock ticks since the machine started
    boot: str  # of the machine
    world: int  # in which process numbers are counted: not the same inside a cluster


@dataclass(frozen=True)
class Facts:
    """What a cluster.json says; while the cluster starts, its size alone."""

    size: Size
    first: Process | None = None  # the cluster's PID 1, which all of it hangs on
    launcher: int | None = None  # the process that started it

    @classmethod
    def from_json(cls, text: str) -> "Facts":
        """Raises ValueError, KeyError or TypeError where the text has another form."""
        found = json.loads(text)
        size = Size(**found["size"])
        if found["first"] is None:
            return cls(size)
        return cls(size, Process(**found["first"]), found["launcher"])


@dataclass(frozen=True)
class Living:
    """A cluster that is up."""

    size: Size
    pid: int  # of the cluster's PID 1, as this process counts
    launcher: int


class State:
    """A directory with a cluster.json, which the last ``up`` wrote.

    That file names the process which the whole cluster hangs on, so that a cluster
    which a crash or a restart of the machine ended is known to be gone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def must_be_usable(self) -> None:
        """Refuse a path that sockets or slurm.conf cannot take."""
        if len(str(self.path)) > LONGEST_PATH:
            raise ClusterError(
                f"{self.path} has more than {LONGEST_PATH} letters, too many for the "
                "sockets in it: name a shorter state directory, such as "
                "/tmp/my-cluster"
            )
        if not re.fullmatch(r"[\w./+-]+", str(self.path), re.ASCII):
            raise ClusterError(
                f"{str(self.path)!r} cannot stand in Slurm's configuration: name a "
                "state directory of letters, digits and -_.+ alone"
            )

    # The facts

    def facts(self) -> Facts | None:
        """What the last `up` wrote, None if there was none."""
        file = self.path / "cluster.json"
        try:
            return Facts.from_json(file.read_text())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError:
            raise ClusterError(self._another_users()) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ClusterError(
                f"cannot read {file} ({error}): remove {self.path}"
            ) from None

    def write(self, facts: Facts) -> None:
        partial = self.path / "cluster.json.tmp"
        partial.write_text(json.dumps(asdict(facts)))
        partial.replace(self.path / "cluster.json")

    def living(self) -> Living | None:
        """The cluster of this directory if it's up, else None."""
        facts = self.facts()
        if facts is None or facts.first is None or facts.launcher is None:
            return None
        if not self._is_alive(facts.first):
            return None
        return Living(facts.size, facts.first.pid, facts.launcher)

    def must_be_up(self) -> Living:
        living = self.living()
        if living is None:
            raise ClusterError(self.no_cluster())
        return living

    def no_cluster(self) -> str:
        return f"no practice cluster is up in {self.path}: `workshop cluster up`"

    def _is_alive(self, first: Process) -> bool:
        if first.boot == _boot() and first.world != _world():
            raise ClusterError(
                "this shell is inside a practice cluster or a container: leave it "
                "(`exit`) and use `workshop cluster` outside"
            )
        with suppress(OSError):
            return identity(first.pid) == first
        return False

    # The directory

    @contextmanager
    def locked(self, create: bool = False) -> Iterator[None]:
        """One command at a time starts or ends the cluster of a directory."""
        handle = self._lock(create)
        try:
            yield
        finally:
            os.close(handle)

    def _lock(self, create: bool) -> int:
        while True:
            handle = self._open(create)
            try:
                if os.fstat(handle).st_uid != os.geteuid():
                    raise ClusterError(self._another_users())
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Not one that another command has removed meanwhile.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(handle), os.stat(self.path)):
                        return handle
                os.close(handle)
            except BlockingIOError:
                os.close(handle)
                raise ClusterError(
                    f"another command starts or ends the cluster in {self.path}: "
                    "wait for it"
                ) from None
            except BaseException:
                os.close(handle)
                raise

    def _open(self, create: bool) -> int:
        try:
            if create:
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not create:
                raise ClusterError(self.no_cluster()) from None
            raise ClusterError(
                f"cannot use {self.path} ({error.strerror}): name another directory "
                "with --state"
            ) from None

    def _another_users(self) -> str:
        return f"{self.path} is another user's: name another directory with --state"

    def clear(self) -> None:
        """Remove what a cluster left that ended without `down`; nothing else."""
        if not self.facts() and any(self.path.iterdir()):
            raise ClusterError(
                f"{self.path} holds files which are not a practice cluster's: name an "
                "empty or a new directory with --state"
            )
        self._remove_own_files()

    def remove(self) -> None:
        """Remove the directory, unless somebody put files of theirs into it."""
        self._remove_own_files()
        with suppress(OSError):
            self.path.rmdir()

    def _remove_own_files(self) -> None:
        """By name: a wrong path must never cost anybody their files."""
        for name in FOLDERS:
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in FILES:
            (self.path / name).unlink(missing_ok=True)


# Processes


def identity(pid: int) -> Process:
    """The process that has this number now.

    Raises:
        OSError: there is no such process.
    """
    stat = Path(f"/proc/{pid}/stat").read_text()
    started = stat.rpartition(")")[2].split()[19]
    return Process(pid, started, _boot(), _world())


def has_ended(pid: int) -> bool:
    """Is it gone, or dead and only not yet buried by its parent?"""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _world() -> int:
    """In which process numbers are counted: not the same inside a cluster."""
    return os.stat("/proc/self/ns/pid").st_ino
