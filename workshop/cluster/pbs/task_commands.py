"""The commands that start programs on the hosts of a job, and ssh."""

from __future__ import annotations

import getopt
import os
import select
import signal
import threading

from .call import EXIT_UNKNOWN_JOB, Answer, Call
from .command import Reply
from .jobs import RunningJob
from .tasks import Task, peer_pid

PBSDSH_USAGE = """\
Usage: pbsdsh [-c copies][-s][-v][-o] -- program [args...]
       pbsdsh [-n node_index][-s][-v][-o] -- program [args...]"""
TMRSH_USAGE = "usage: pbs_tmrsh [-n][-l username] host [-n][-l username] command"
EXIT_REFUSED = 255  # of pbs_tmrsh


def pbsdsh(call: Call) -> int:
    """One task for each line of the node file; the exit status says nothing."""
    options, argv = call.options("c:n:h:svo", status=1)
    if not argv or {"c", "n"} <= options.keys():
        raise Answer(PBSDSH_USAGE)
    running = call.own_job()
    lines = running.job.nodefile.split()
    of_lines = list(range(int(options.get("c", len(lines)))))
    if "n" in options:
        of_lines = [int(options["n"])]
    chosen = [lines[number % len(lines)] for number in of_lines]
    if "h" in options:  # not in the last release of OpenPBS
        chosen = [line for line in lines if line == options["h"]][:1]
    if not chosen:
        raise call.stop("no such node")
    hosts = [line.removesuffix(running.job.domain) for line in chosen]
    tasks = [start(call, running, host, argv) for host in hosts]
    watch_for_signals(call, tasks)
    for number, task in enumerate(tasks):
        status = exit_status(call, task)
        if status or "v" in options:
            said = f"pbsdsh: task 0x{number:08X} exit status {status}\n"
            call.send(Reply(out=said))
    return 0


def watch_for_signals(call: Call, tasks: list[Task]) -> None:
    """Pass a SIGTERM of pbsdsh on to its tasks, on all hosts."""

    def watch() -> None:
        try:
            ready, _, _ = select.select([call.connection], [], [], None)
            if ready and b"signal" in call.connection.recv(100):
                for task in tasks:
                    task.signal(signal.SIGTERM)
        except (OSError, ValueError):
            pass  # the command has ended

    threading.Thread(target=watch, daemon=True).start()


def start(call: Call, running: RunningJob, host: str, argv: list[str]) -> Task:
    if host in call.pbs.lost:
        call.never_answer()
    return running.start_task(host, argv)


def exit_status(call: Call, task: Task) -> int:
    """The status of a task as PBS reports it: of a signal, its number."""
    status = task.wait()
    if task.host in call.pbs.lost:
        call.never_answer()
    return abs(status)


def pbs_tmrsh(call: Call) -> int:
    """A program on a host of the job; ends with the exit status of the program."""
    argv = call.argv
    while argv and argv[0] in ("-n", "-l"):
        argv = argv[1:] if argv[0] == "-n" else argv[2:]
    if len(argv) < 2:
        raise Answer(TMRSH_USAGE, EXIT_REFUSED)
    running = call.own_job()
    job = running.job
    names = {f"{host}{job.domain}": host for host in job.distinct_hosts}
    names |= {call.pbs.addresses[host]: host for host in job.distinct_hosts}
    if argv[0] not in names:
        said = f'host "{argv[0]}" is not a node in job <{job.id}>'
        raise call.stop(said, EXIT_REFUSED)
    return exit_status(call, start(call, running, names[argv[0]], argv[1:]))


def pbs_attach(call: Call) -> int:
    """Make what follows a part of the job; it is removed with it."""
    if call.argv[:1] != ["-j"] or len(call.argv) < 3:
        raise Answer("usage: pbs_attach -j jobid command")
    running = call.job(call.argv[1]).running
    if running is None:
        raise call.stop(f"Unknown Job Id {call.argv[1]}", EXIT_UNKNOWN_JOB)
    running.attached.append(os.getsid(peer_pid(call.connection)))
    command = call.argv[2:]
    if command[0] == "--":
        command = command[1:]
    call.send(Reply(become=command))
    return 0


# Another host, as a user reaches it


SSH_USAGE = "usage: ssh [-nqtTx] [-o option] [-l user] [-p port] host command"


def ssh(call: Call) -> int:
    """A command in the bare environment that sshd gives; nothing of a job."""
    try:
        _, rest = getopt.getopt(call.argv, "46aAnNqtTvxXYo:l:p:i:F:")
    except getopt.GetoptError as error:
        raise Answer(SSH_USAGE, 255) from error
    if len(rest) < 2:
        raise Answer(SSH_USAGE, 255)
    name = rest[0].rpartition("@")[2].removesuffix(call.pbs.domain)
    hosts = {call.pbs.addresses[host]: host for host in call.pbs.hosts}
    host = hosts.get(name, name)
    if host not in call.pbs.hosts:
        raise call.stop(f"Could not resolve hostname {name}", 255)
    if host in call.pbs.lost:
        call.never_answer()
    env = call.pbs.user | {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/games",
        "SSH_CLIENT": "10.77.0.1 40000 22",
        "SSH_CONNECTION": f"10.77.0.1 40000 {call.pbs.addresses[host]} 22",
    }
    shell = ["/bin/bash", "-c", " ".join(rest[1:])]
    task = call.pbs.tasks.start(host, shell, env, call.pbs.home, call.descriptors)
    status = exit_status(call, task)
    return 255 if task.wait() < 0 else status
