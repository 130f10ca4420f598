"""The commands of PBS, as the server answers them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from .call import Call
from .command import Reply
from .jobs import SERVER, Job
from .placement import Refused
from .request import read_request, seconds
from .task_commands import pbs_attach, pbs_tmrsh, pbsdsh, ssh

EXIT_FINISHED = 35
EXIT_UNAUTHORIZED = 159


def qsub(call: Call) -> int:
    try:
        request = read_request(
            call.argv,
            call.cwd,
            call.env,
            lambda: read_all(call.descriptors[0]),
            call.pbs.gpus,
        )
    except Refused as error:
        raise call.stop(str(error), error.status) from error
    env = call.env | {"HOSTNAME": call.host}
    with call.pbs.changed:
        new = Job(call.pbs.take_number(), request, call.cwd, env, call.pbs.domain)
        job = call.pbs.submit(new)
    call.send(Reply(out=f"{job.id}\n"))
    if not request.block:
        return 0
    with call.pbs.changed:  # its output is not there yet
        call.pbs.changed.wait_for(lambda: job.state == "F" or job.has_ended)
    return (job.exit_status or 0) & 255


def read_all(descriptor: int) -> str:
    with open(os.dup(descriptor)) as file:
        return file.read()


def qstat(call: Call) -> int:
    options, job_ids = call.options("fxtanswH")
    with call.pbs.changed:
        jobs = [call.job(job_id) for job_id in job_ids] or list(call.pbs.jobs)
        history = "x" in options or "H" in options
        for job in jobs if job_ids and not history else ():
            if job.state == "F":
                raise call.stop(
                    f"{job.id} Job has finished, use -x or -H to obtain "
                    "historical job information",
                    EXIT_FINISHED,
                )
        jobs = [job for job in jobs if history or job.state != "F"]
        if not job_ids:
            jobs = [job for job in jobs if "t" in options or job.index is None]
        show = show_fully if "f" in options else show_line
        text = "".join(show(job, call.pbs.user["USER"]) for job in jobs)
    if text and show is show_line:
        text = TABLE_HEAD + text
    call.send(Reply(out=text))
    return 0


TABLE_HEAD = """\
Job id            Name             User              Time Use S Queue
----------------  ---------------- ----------------  -------- - -----
"""


def show_line(job: Job, user: str) -> str:
    name = job.request.name
    return f"{job.id:<17} {name:<16.16} {user:<16}         0 {job.state} workq\n"


def show_fully(job: Job, user: str) -> str:
    """`qstat -f`: the attributes that a script may want to read."""
    lines = {
        "Job_Name": job.request.name,
        "Job_Owner": f"{user}@{job.submitter['HOSTNAME']}",
        "job_state": job.state,
        "queue": "workq",
        "project": job.request.project,
        "run_count": job.run_count or "",
        "Rerunable": job.request.rerunnable,
        "exec_host": "+".join(f"{host}/0" for host in job.hosts),
        "Join_Path": job.request.join,
        "Output_Path": f"{SERVER}:{job.output_path}" if job.output_path else "",
        "Error_Path": f"{SERVER}:{job.error_path}" if job.error_path else "",
        "comment": job.comment,
        "Exit_status": "" if job.exit_status is None else job.exit_status,
    }
    total = {"ncpus": 0, "ngpus": 0, "mpiprocs": 0}
    for chunk in job.request.chunks:
        total["ncpus"] += chunk.amount.ncpus
        total["ngpus"] += chunk.amount.ngpus
        total["mpiprocs"] += chunk.mpiprocs
    resources = {name: number for name, number in total.items() if number}
    resources |= job.request.shown_resources()
    lines |= {f"Resource_List.{name}": text for name, text in resources.items()}
    shown = "".join(f"    {k} = {v}\n" for k, v in lines.items() if v != "")
    return f"Job Id: {job.id}\n{shown}\n"


def qdel(call: Call) -> int:
    _, job_ids = call.options("xW:")
    for job_id in job_ids:
        job = call.job(job_id)
        if job.state == "F":
            raise call.stop(f"Job has finished {job.id}", EXIT_FINISHED)
        with call.pbs.changed:
            call.pbs.delete(job)
    return 0


def qsig(call: Call) -> int:
    options, job_ids = call.options("s:")
    name = options.get("s", "TERM").removeprefix("SIG")
    for job_id in job_ids:
        running = call.job(job_id).running
        number = int(name) if name.isdigit() else getattr(signal, f"SIG{name}", None)
        if number is None:
            raise call.stop(f"unknown signal {name}")
        if running is None:
            raise call.stop(f"Request invalid for state of job {job_id}")
        running.signal(number)
    return 0


def qrerun(call: Call) -> int:
    """For operators, whom the rehearsal has none of but its ``rerun``."""
    for job_id in call.argv:
        job = call.job(job_id)
        raise call.stop(f"Unauthorized Request  {job.id}", EXIT_UNAUTHORIZED)
    return 0


def qalter(call: Call) -> int:
    """``-l walltime=``, which users may only lower."""
    options, job_ids = call.options("l:")
    limit = seconds(options.get("l", "").removeprefix("walltime="))
    for job_id in job_ids:
        request = call.job(job_id).request
        if limit is None or limit > (request.walltime or limit):
            raise call.stop(f"Unauthorized Request  {job_id}", EXIT_UNAUTHORIZED)
        request.walltime = limit
    return 0


def pbsnodes(call: Call) -> int:
    """``pbsnodes -a``: the hosts, and what they have."""
    call.options("av")
    for host, amount in call.pbs.capacity.items():
        state = "down" if host in call.pbs.lost else "free"
        has = {"host": host, "ncpus": amount.ncpus, "mem": f"{amount.mem_mb}mb"}
        has |= {"ngpus": amount.ngpus} if amount.ngpus else {}
        lines = [f"     resources_available.{name} = {it}" for name, it in has.items()]
        text = "\n".join([host, f"     Mom = {host}", f"     state = {state}", *lines])
        call.send(Reply(out=f"{text}\n\n"))
    return 0


COMMANDS: dict[str, Callable[[Call], int]] = {
    "qsub": qsub,
    "qstat": qstat,
    "qdel": qdel,
    "qsig": qsig,
    "qrerun": qrerun,
    "qalter": qalter,
    "pbsnodes": pbsnodes,
    "pbsdsh": pbsdsh,
    "pbs_tmrsh": pbs_tmrsh,
    "pbs_attach": pbs_attach,
    "ssh": ssh,
}
