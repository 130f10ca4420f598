"""The cluster as its users see it, from outside: up, run, off, on, link, down ..."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from workshop.cluster.nodes import config, machine
from workshop.cluster.nodes.control import PATIENCE, Control
from workshop.cluster.nodes.errors import ClusterError
from workshop.cluster.nodes.state import (
    Facts,
    Living,
    Size,
    State,
    has_ended,
    identity,
)
from workshop.system import processes, protection


class NodeStatus(NamedTuple):
    """A node: is it on, is its cable plugged, and what does Slurm call it?"""

    name: str
    address: str
    power: bool
    link: bool
    slurm: str


class Status(NamedTuple):
    """The nodes, and the network between them (delay in seconds, one way)."""

    nodes: list[NodeStatus]
    rate: str | None
    delay: float
    far: dict[str, float]  # nodes with a delay of their own


# The cluster


class Cluster:
    """One practice cluster; several live side by side in different directories.

    ``state_dir``: where it keeps its files, at most 70 letters long; by default
    $WORKSHOP_CLUSTER, else a place of the user's own in /tmp. Every method raises
    ClusterError, one sentence with the cure.
    """

    def __init__(self, state_dir: str | Path | None = None) -> None:
        place = state_dir or os.environ.get("WORKSHOP_CLUSTER")
        place = place or f"/tmp/workshop-cluster-{os.geteuid()}"
        self.state = Path(place).resolve()
        self._files = State(self.state)
        self._control = Control(self._files)
        self._launcher: subprocess.Popen | None = None
        self._lifeline: socket.socket | None = None  # of a cluster that may not stay

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *exception) -> None:
        if self._files.living():
            self.down()

    # Up and down

    def up(
        self,
        nodes: int = 2,
        cpus: int = 4,
        gpus: int = 0,
        memory_mb: int = 8000,
        *,
        stay: bool = True,
        hidden: Sequence[str] | None = None,
    ) -> None:
        """Start the cluster; returns when Slurm calls all its nodes idle.

        The nodes claim that many CPUs, GPUs and that much memory each, whatever this
        machine has. The GPUs exist for Slurm only. Unless it is to ``stay``, it ends
        with this process, however that ends; its directory is left. With `hidden`, a
        list, jobs see this machine's files as `protection` says.
        """
        size = Size(nodes, cpus, gpus, memory_mb)
        config.check_size(size)
        self._files.must_be_usable()
        if reasons := machine.missing():
            raise ClusterError("; ".join(reasons))
        with self._files.locked(create=True):
            living = self._files.living()
            if living is not None:
                raise ClusterError(
                    f"a practice cluster of {living.size.nodes} nodes is already up in "
                    f"{self.state}: use it, or end it with `workshop cluster down`"
                )
            try:
                self._files.clear()
                self._files.write(Facts(size))
                config.write_files(self.state, size)
                self._start(size, stay, hidden)
            except ClusterError:
                raise  # it names a log that tells why
            except BaseException:  # Ctrl-C: leave nothing
                self._end_launcher()
                self._files.remove()
                raise

    def _start(self, size: Size, stay: bool, hidden: Sequence[str] | None) -> None:
        """Start PID 1 of the cluster; it ends with this process until all is up."""
        ours, theirs = socket.socketpair()
        with interrupted_later():
            launcher = self._launch(theirs, size.nodes, hidden)
            self._launcher = launcher
        try:
            theirs.close()
            ours.settimeout(PATIENCE)
            said = ours.makefile("r").readline().strip()
            if said != "ready":
                raise ClusterError(self._why_not_up(said))
            pid = self._control.pid_of_listener()
            self._files.write(Facts(size, identity(pid), launcher.pid))
            if stay:
                ours.sendall(b"stay")
            else:
                self._lifeline = ours
        except BaseException as error:
            self._end_launcher()
            if isinstance(error, TimeoutError):
                raise ClusterError(f"no node was up after {PATIENCE:.0f} s") from None
            raise
        finally:
            if self._lifeline is not ours:
                ours.close()

    def _launch(
        self, theirs: socket.socket, nodes: int, hidden: Sequence[str] | None
    ) -> subprocess.Popen:
        """Start `inside` in a world of its own; ``theirs`` is its standard input."""
        inside = ["-S", "-s", "-E", "-m", "workshop.cluster.nodes.inside"]
        arguments = [str(self.state), str(nodes)]
        environment = self.environment()
        if hidden is not None:
            arguments += ["protected", *hidden]
            environment[protection.VISIBLE] = ":".join(protection.programs())
        with (self.state / "log" / "login.log").open("ab") as log:
            return subprocess.Popen(
                [*machine.own_world(), sys.executable, *inside, *arguments],
                cwd=Path(__file__).resolve().parents[3],
                env=environment,
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this process, which cleans up
            )

    def _end_launcher(self) -> None:
        """The kernel ends PID 1 of the cluster with it, and all else with that."""
        if self._launcher:
            inside, _ = processes.below(self._launcher.pid)
            self._launcher.kill()
            self._launcher.wait()
            self._launcher = None
            for pid in inside:  # it may still write into the directory
                wait_for_end(pid)

    def _why_not_up(self, said: str) -> str:
        """One sentence from what the cluster's PID 1 or the daemons' logs say."""
        lines = []
        for name in ("login.log", "slurmctld.out", "slurmctld.log", "munged.log"):
            with suppress(OSError):
                text = (self.state / "log" / name).read_text(errors="replace")
                lines += [line for line in text.splitlines() if line.strip()]
        telling = [
            line for line in lines if re.search("error|fatal|denied", line, re.I)
        ]
        last = (telling or lines or ["no reason given"])[-1]
        reason = f"{said} ({last})" if said else last
        return f"the practice cluster did not start: {reason}; see {self.state}/log"

    def down(self) -> bool:
        """End the cluster and all its jobs, remove its files.

        Returns False if it had ended before and only its files were left.
        """
        with self._files.locked():
            if self._files.facts() is None:
                raise ClusterError(self._files.no_cluster())
            living = self._files.living()
            if living is not None:
                self._kill(living)
            self._files.remove()
        return living is not None

    def _kill(self, living: Living) -> None:
        """The kernel ends everything in the namespaces with their PID 1."""
        os.kill(living.pid, signal.SIGKILL)
        for pid in (living.pid, living.launcher):
            wait_for_end(pid)
        if self._lifeline:
            self._lifeline.close()
            self._lifeline = None
        if self._launcher:
            self._launcher.wait()
            self._launcher = None
        else:  # started by another object of this process, or not by it
            with suppress(ChildProcessError):
                os.waitpid(living.launcher, 0)

    # Commands in it

    @property
    def hosts(self) -> list[str]:
        """The names of the nodes: n1, n2 ...; the host you log in to is "login"."""
        return config.node_names(self._files.must_be_up().size.nodes)

    def command(
        self,
        args: Sequence[str | Path],
        node: str | None = None,
        cwd: str | Path | None = None,
    ) -> list[str]:
        """The words that run `args` on the login host or on a node, from outside."""
        if node is None or node == config.LOGIN:
            pid = self._files.must_be_up().pid
        else:
            pid = self._control.pid_of_node(node)
        user = ["--user", "--preserve-credentials"] if os.geteuid() else []
        return [
            *("nsenter", "-t", str(pid), *user),
            *("--mount", "--net", "--uts", "--ipc", "--pid", "--"),
            # nsenter stays outside and waits; it does not die without its command.
            *("setpriv", "--pdeathsig", "TERM"),
            *("env", "--default-signal=INT,QUIT", "-C", os.path.abspath(cwd or ".")),
            *map(str, args),
        ]

    def popen(
        self,
        args: Sequence[str | Path],
        node: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **options: Any,
    ) -> subprocess.Popen:
        """Start a command in the cluster; `options` are those of subprocess.Popen.

        `env` is added to the environment of this process.
        """
        command = self.command(args, node, cwd)
        return subprocess.Popen(command, env=self.environment(env), **options)

    def run(
        self,
        args: Sequence[str | Path],
        node: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        timeout: float | None = None,
        check: bool = False,
        input: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the cluster and wait for it; its output is captured.

        Raises:
            ClusterError: `check`, and it ended with another status than 0.
            subprocess.TimeoutExpired: it was killed after `timeout` seconds.
        """
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        process = self.popen(
            args,
            node,
            env,
            cwd,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:  # its children, too
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        if check and process.returncode:
            words = " ".join(map(str, args))
            raise ClusterError(
                f"`{words}` ended with status {process.returncode} on "
                f"{node or config.LOGIN}: {(err or out).strip()[-2000:]}"
            )
        return subprocess.CompletedProcess(list(args), process.returncode, out, err)

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The caller's environment, without a Slurm job that it may be part of."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
        own = {
            "PATH": machine.search_path(),
            "SLURM_CONF": str(self.state / "slurm" / "slurm.conf"),
            "WORKSHOP_CLUSTER": str(self.state),
        }
        return {**kept, **own, **(more or {})}

    def write_shell_start(self) -> Path:
        """The start file of a shell in the cluster: the user's own, another prompt."""
        self._files.must_be_up()
        path = self.state / "bashrc"
        path.write_text(
            "[ ! -f ~/.bashrc ] || . ~/.bashrc\n"
            "PS1='[cluster \\h \\W]\\$ '\n"
            "unset PROMPT_COMMAND\n"
        )
        return path

    # Faults and the network

    def off(self, node: str) -> None:
        """Power the node off: everything in it dies, its peers hear nothing."""
        self._control.ask("off", node)

    def on(self, node: str) -> None:
        """Power the node on; Slurm calls it idle a moment later."""
        self._control.ask("on", node)

    def link(self, node: str, position: str) -> None:
        """Pull ("down") or plug ("up") the node's network cable."""
        if position not in ("up", "down"):
            raise ClusterError(f"a link is up or down, not {position!r}")
        self._control.ask("link", node, position)

    def rate(self, rate: str) -> None:
        """Limit every cable both ways, such as "1gbit" or "100mbit"; or "off"."""
        if rate == "off":
            return self._control.ask("rate", None)
        config.check_rate(rate)
        return self._control.ask("rate", rate)

    def delay(self, delay: str, node: str | None = None) -> None:
        """Set nodes, or one from all others, apart: "1ms" one way; or "off"."""
        seconds = 0.0 if delay == "off" else config.seconds_of(delay)
        self._control.ask("delay", seconds, node)

    def status(self) -> Status:
        """What is on, what is plugged, what Slurm thinks of it."""
        seen = self._control.ask("status")
        listed = self.run(["sinfo", "-h", "-N", "-o", "%N %T"], timeout=PATIENCE).stdout
        slurm = dict(line.split(maxsplit=1) for line in listed.splitlines())
        nodes = [
            NodeStatus(
                name,
                config.address(name),
                node["pid"] is not None,
                node["link"],
                slurm.get(name, "unknown"),
            )
            for name, node in seen["nodes"].items()
        ]
        return Status(nodes, seen["rate"], seen["delay"], seen["far"])


def wait_for_end(pid: int) -> None:
    """Wait until a process of the cluster has ended.

    Raises:
        ClusterError: it does not end.
    """
    end = time.monotonic() + PATIENCE
    while not has_ended(pid):
        if time.monotonic() > end:
            raise ClusterError(f"process {pid} of the cluster does not end")
        time.sleep(0.005)


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Ctrl-C in this block comes at its end: what it has started must be known."""
    handler = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not (in_main and callable(handler)):
        yield
        return
    came: list[tuple] = []
    signal.signal(signal.SIGINT, lambda *what: came.append(what))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    for what in came:
        handler(*what)
