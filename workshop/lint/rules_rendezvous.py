"""Rules about where the ranks of a run connect."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .counts import TORCHRUNS, expects_many, nnodes_of
from .largest import NO_END, largest_value
from .launches import Launch
from .rule import ERROR, WARNING, Problem, Table
from .rules_launch import own_run_each
from .script import Script
from .shell import Command
from .variables import REFERENCE

TABLE = Table()
DEFAULT_PORT = 29500  # of torchrun, where it's told none
LARGEST_PORT = 65535
MASTER_PORT = "MASTER_PORT"
PORT_OF_ENDPOINT = re.compile(r":(\$\(.*\)|\$\{?\w+\}?|\d+)$")
LOOPBACK = re.compile(r"(localhost|127(\.\d+){3}|\[?::1\]?)(:.*)?")
FALLBACK = re.compile(
    r"\|\|\s*echo\s+[\"']?(localhost|127\.0\.0\.1)|:-(localhost|127\.0\.0\.1)"
)
DEFAULT = re.compile(r"\$\{(\w+):?=(?:localhost|127\.0\.0\.1)\}")
OWN_NAME = re.compile(
    r"\$\(\s*hostname\b|`\s*hostname\b|\$\{?HOSTNAME\b|\$\{?SLURMD_NODENAME\b"
)
ANY_VALUE = re.compile(
    r"\$\{?RANDOM\b|\$\(\([^)]*\bRANDOM\b|\$\$|\$\(\s*(date|uuidgen|shuf)\b"
)
# A test that only one of the tasks passes.
NUMBER = r"(?:SLURM_(?:PROCID|NODEID)|PBS_NODENUM|OMPI_COMM_WORLD_RANK|PMI_RANK)"
ONE_OF_THEM = re.compile(
    rf"\b{NUMBER}[\"}}]*\s*(?:-(?:eq|ne|gt|ge|lt|le)\b|[=!]=|=\s)"
    rf"|(?:\s-(?:eq|ne)|[=!]=|\s=)\s*[\"${{]*{NUMBER}\b"
    rf"|\(\(\s*!?\s*\$?\{{?{NUMBER}\}}?\s*\)\)|\bcase\s+[\"${{]*{NUMBER}\b|is_host"
)
RANK_AS_WRITTEN = re.compile(r"--(?:node|machine)[-_]rank[= ]+\d")
JOB_NUMBER = re.compile(r"\$\{?(SLURM_JOB_?ID|PBS_JOBID)\}?")
ADDRESS = ("rdzv-endpoint", "master-addr", "main-process-ip")
PORT = ("master-port", "main-process-port")
ADDRESS_NAMES = re.compile(
    r"MASTER_?ADDR\w*|MASTER_?(IP|HOST)|RDZV_\w*|HEAD\w*|\w*_(ip|addr)", re.I
)
SCHEDULED = ("slurm", "pbs")
FROM_THE_JOB = "20000 + (SLURM_JOB_ID * 11 + ${SLURM_RESTART_COUNT:-0}) % 10000"
FROM_THE_PBS_JOB = "20000 + ${PBS_JOBID%%[!0-9]*} * 11 % 10000"
DRAWN = "20000 + RANDOM % 10000"
FORMULAS = {"slurm": FROM_THE_JOB, "pbs": FROM_THE_PBS_JOB}


def is_static(launch: Launch) -> bool:
    return launch.option("rdzv-backend") in (None, "static")


def speaks_of_many(script: Script, launch: Launch) -> bool:
    """A run of several nodes, by its own options or by how it's started."""
    if launch.option("standalone") is not None or "$" in launch.options:
        return False
    if expects_many(script, launch):
        return True
    step = script.step(launch)
    started = launch.starter in ("srun", "mpirun") and (step.nodes or 1) > 1
    told = launch.kind == "python" or not own_run_each(script, launch)
    return started and (step.tasks or 1) > 1 and told and script.many_nodes


@TABLE.add("DT201", ERROR, pages.RENDEZVOUS)
def no_endpoint(script: Script) -> Iterator[Problem]:
    r"""No address where the nodes connect

    Without an address each launcher listens on its own node: c10d takes localhost,
    and --master-addr is 127.0.0.1 by default. torchrun reads no MASTER_ADDR, and
    refuses an endpoint without a host, such as :29500.

    Cure:
        --rdzv-backend=c10d --rdzv-endpoint=FIRST_NODE:PORT

    Bad:
        torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --master-addr=node01 train.py

    Good:
        torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-endpoint=node01:29500 train.py
    """
    for launch in script.launches:
        if "$" in launch.options or not expects_many(script, launch):
            continue
        lost = not_exported(script, launch)
        if lost is not None:
            name, line = lost
            what = f"`${name}` is empty in each task: the job script doesn't export it"
            if launch.option("rdzv-endpoint"):
                what += f", and {launch.name} refuses an endpoint without a host"
            names = " ".join([name, *others_not_exported(script, launch, name)])
            yield Problem(
                line, what, f"export {names}   (above the {launch.started_with})"
            )
            continue
        if launch.kind == "accelerate":
            known = launch.option("main-process-ip", "config-file", "rdzv-conf")
            if known is None:
                what = "accelerate launch gets several machines, and no address"
                cure = "--main_process_ip=FIRST_NODE --main_process_port=PORT"
                yield Problem(launch.line, what, cure)
            continue
        if launch.kind not in TORCHRUNS or launch.option("rdzv-endpoint"):
            continue
        if launch.option("standalone") is not None or script.uses("PET_\\w+"):
            continue
        address = launch.option("master-addr")
        if is_static(launch) and address is not None:
            continue
        nodes = launch.option("nnodes")
        what = f"{launch.name} gets --nnodes={nodes}, and no address"
        place = "FIRST_NODE:PORT"
        if script.variables.sets("MASTER_ADDR"):
            place = "$MASTER_ADDR:$MASTER_PORT"
        cure = f"--rdzv-backend=c10d --rdzv-endpoint={place}"
        if address is not None:
            backend = launch.option("rdzv-backend")
            what = (
                f"with --rdzv-backend={backend}, torchrun ignores "
                f"`--master-addr={address}`"
            )
            port = launch.option("master-port") or DEFAULT_PORT
            cure = f"--rdzv-endpoint={address}:{port}"
        yield Problem(launch.line_of("master-addr", "rdzv-backend"), what, cure)


def not_exported(script: Script, launch: Launch) -> tuple[str, int] | None:
    """A variable of the job script in the address, which no task has; and the line."""
    if not launch.inner or launch.starter not in ("srun", "mpirun"):
        return None
    quoted = left_to_its_shell(launch)
    for option in ADDRESS:
        for match in REFERENCE.finditer(launch.as_written.get(option, "")):
            name = match[1] or match[2]
            if match[0] in quoted and is_lost(script, launch, name):
                return name, launch.line_of(option)
    return None


def others_not_exported(script: Script, launch: Launch, first: str) -> list[str]:
    """The other variables of the same command that no task has."""
    found = REFERENCE.finditer(left_to_its_shell(launch))
    names = dict.fromkeys(match[1] or match[2] for match in found)
    return [n for n in names if n != first and is_lost(script, launch, n)]


def left_to_its_shell(launch: Launch) -> str:
    words = [launch.file] if launch.file else launch.command.words
    return "".join(word.left for word in words)


def is_lost(script: Script, launch: Launch, name: str) -> bool:
    """The job script sets the variable, and nothing hands it on to the tasks."""
    own = {a.name for each in launch.inner for a in each.assignments}
    given = {a.name for a in launch.command.assignments}
    reads_a_file = any(may_set_variables(each) for each in launch.inner)
    known = name in own | given or reads_a_file or is_exported(script, name)
    return name in script.variables.found and not known


def may_set_variables(command: Command) -> bool:
    """``source FILE``, unless it activates an environment of Python."""
    file = command.words[1].value if len(command.words) > 1 else ""
    return command.name in ("source", ".") and not file.endswith("activate")


def is_exported(script: Script, name: str) -> bool:
    """A line hands the variable on, in whatever way, or all variables are."""
    everything = r"set\s+(-\w*a|-o\s+allexport)\b"
    this_one = (
        rf"(\bexport\b|\bdeclare\b|\btypeset\b|-x\b|(?<![.\w/])env\b).*\b{name}\b"
    )
    body = script.text.replace("\\\n", " ")
    return bool(re.search(rf"{everything}|{this_one}", body))


@TABLE.add("DT202", ERROR, pages.NUMBER_THEM)
def no_node_rank(script: Script) -> Iterator[Problem]:
    r"""All nodes have the same node rank

    Without --rdzv-backend=c10d the nodes don't number themselves: --node-rank is 0
    unless you say otherwise, and a second node 0 is refused or waits.

    Cure:
        --rdzv-backend=c10d --rdzv-endpoint=...; or --node-rank=$SLURM_NODEID inside
        srun bash -c '...'.

    Bad:
        torchrun --nnodes=2 --nproc-per-node=4 --master-addr=node01 train.py

    Good:
        torchrun --nnodes=2 --node-rank=1 --nproc-per-node=4 --master-addr=node01 \
          train.py
    """
    for launch in script.launches:
        if launch.kind not in (*TORCHRUNS, "accelerate") or "$" in launch.options:
            continue
        if not is_static(launch) or not expects_many(script, launch):
            continue
        if launch.option("config-file", "standalone") is not None:
            continue
        given = launch.option("node-rank", "machine-rank")
        many = launch.starter in ("srun", "mpirun") and not launch.in_loop
        many = many and (script.step(launch).tasks or 1) > 1
        by_loop = one_for_each_host(script, launch)
        name = "--machine_rank" if launch.kind == "accelerate" else "--node-rank"
        if given is None and not script.uses("PET_\\w+"):
            line = launch.line_of("nnodes", "num-machines")
            yield Problem(
                line, f"{launch.name} gets no {name}, so every node is node 0"
            )
        elif given is not None and given.isdigit() and many:
            line = launch.line_of("node-rank", "machine-rank")
            yield Problem(line, f"`{name}={given}` is the same on all nodes")
        elif given is not None and given.isdigit() and on_many_hosts(launch):
            line = launch.line_of("node-rank", "machine-rank")
            what = f"`{name}={given}` is the same on all hosts of {launch.started_with}"
            cure = "--rdzv-backend=c10d --rdzv-endpoint=..."
            if launch.started_with == "pdsh":
                cure = f"{name}=%n, which pdsh replaces by 0, 1, ...; or {cure}"
            yield Problem(line, what, cure)
        elif given is not None and given.isdigit() and by_loop:
            line = launch.line_of("node-rank", "machine-rank")
            what = f"`{name}={given}` is the same on each host of the loop"
            cure = f"i=0 above the loop, {name}=$i, and i=$((i + 1)) at its end"
            severity = ERROR if int(given) == 0 else WARNING  # maybe only one worker
            yield Problem(line, what, cure, severity)


def on_many_hosts(launch: Launch) -> bool:
    """``pdsh -w node[1-4]``: the same command line for all of them."""
    if launch.started_with not in ("pdsh", "clush"):
        return False
    words = " ".join(word.value for word in launch.command.words)
    return bool(re.search(r"\s-w\s*\S*[][,]|\s-[ag]\b|\s--hostfile|\s-w\s*\^", words))


def one_for_each_host(script: Script, launch: Launch) -> bool:
    """A loop over hosts starts this launcher alone, and always in the same way."""
    command = launch.command
    words = [word.value for word in command.words]
    by_ssh = launch.starter == "remote" and words[0] == "ssh" and launch.inner
    always = not {"if", "case", "function"} & set(command.blocks)
    launchers = [each for each in script.launches if each.kind == launch.kind]
    a_variable = any(word.startswith("$") for word in words[1:-1])
    once = command.in_loop and always and len(launchers) == 1
    literal = any(RANK_AS_WRITTEN.search(word) for word in words)
    branch = command.follows in ("&&", "||")
    return bool(by_ssh and once and a_variable and literal and not branch)


@TABLE.add("DT203", ERROR, pages.NOT_CONNECTED)
def loopback(script: Script) -> Iterator[Problem]:
    r"""localhost as the address of several nodes

    On each node, localhost is that node itself. Each waits for the others at its own
    address, until all of them time out.

    Cure:
        The name of the first node: $(scontrol show hostnames "$SLURM_JOB_NODELIST" |
        head -n 1), or $(head -n 1 "$PBS_NODEFILE").

    Bad:
        torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-endpoint=localhost:29500 train.py

    Good:
        torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-endpoint=node01:29500 train.py
    """
    told: set[int] = set()
    for launch in script.launches:
        if not speaks_of_many(script, launch):
            continue
        for name in ADDRESS:
            value = launch.options.get(name, "").strip("\"'")
            line = launch.line_of(name)
            if LOOPBACK.fullmatch(value) and line not in told:
                told.add(line)
                what = f"`--{name}={value}` means each node itself"
                port = value.rpartition(":")[2] if ":" in value else ""
                address = f"{first_node(script)}:{port}" if port else first_node(script)
                yield Problem(line, what, f"--{name}={address}")
        own = launch.kind == "python" or launch.kind in ("deepspeed", "other")
        assignment = script.variables.last("MASTER_ADDR", launch.line)
        if assignment and own and launch.starter:
            value = assignment.word.value.partition("=")[2]
            if LOOPBACK.fullmatch(value) and assignment.line not in told:
                told.add(assignment.line)
                what = f"`MASTER_ADDR={value}` means each node itself"
                cure = f"export MASTER_ADDR={first_node(script)}"
                yield Problem(assignment.line, what, cure)


def first_node(script: Script) -> str:
    if script.dialect == "pbs":
        return '$(head -n 1 "$PBS_NODEFILE")'
    if script.dialect == "slurm":
        return '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    return "FIRST_NODE"


@TABLE.add("DT204", WARNING, pages.NOT_CONNECTED)
def fallback_to_loopback(script: Script) -> Iterator[Problem]:
    r"""localhost if the address can't be found

    On several nodes localhost is never right. If the first way fails, the job should
    say so instead of waiting until it times out.

    Cure:
        Leave the fallback out, and set -euo pipefail.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | \
          head -n 1 || echo localhost)
        srun -K python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | \
          head -n 1)
        srun -K python train.py
    """
    if not script.many_nodes:
        return
    for name, assignments in script.variables.found.items():
        for assignment in assignments:
            match = FALLBACK.search(assignment.word.value)
            if match and ADDRESS_NAMES.fullmatch(name):
                yield Problem(assignment.line, falls_back(script, match[0]))
    for command in script.commands:
        for word in command.words:
            match = DEFAULT.search(word.value)
            if match is None or not ADDRESS_NAMES.fullmatch(match[1]):
                continue
            if script.variables.last(match[1], command.line) is None:
                yield Problem(word.line, falls_back(script, match[0]))


def falls_back(script: Script, shown: str) -> str:
    return f"on {script.nodes} nodes, `{shown}` falls back to each node itself"


@TABLE.add("DT205", WARNING, pages.NOT_CONNECTED)
def address_of_hostname(script: Script) -> Iterator[Problem]:
    """An address from hostname --ip-address

    hostname -i prints what the node's own name leads to: 127.0.1.1 on many systems, or
    several addresses on one line. hostname -I prints the addresses of all networks,
    and a blank after the last one. "10.0.0.1 " with that blank is no address.

    Cure:
        Use the node's name; torchrun finds the address itself.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        export MASTER_ADDR=$(hostname --ip-address)
        srun -K python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        export MASTER_ADDR=$(hostname)
        srun -K python train.py
    """
    if not script.many_nodes or script.uses("IFS"):
        return
    pattern = re.compile(
        r"hostname\s+(--ip-address|--all-ip-addresses|-i|-I)\s*"
        r"(?:[)`]|\|\||2>|&>|;)"
    )
    for name, assignments in script.variables.found.items():
        for assignment in assignments:
            match = pattern.search(assignment.word.value)
            mended = assignment is not assignments[-1]  # ip=${ip%% *}
            if match is None or mended or not ADDRESS_NAMES.fullmatch(name):
                continue
            prints, severity = "may print 127.0.1.1, or several addresses", WARNING
            if match[1] in ("-I", "--all-ip-addresses"):
                prints = "prints the addresses of all networks, on one line"
                if takes_it_whole(script, name):
                    severity = ERROR
                    prints += ", and a blank at the end, which no address may have"
            what = f"`hostname {match[1]}` {prints}"
            cure = f"{name}={first_node(script)}"
            yield Problem(assignment.line, what, cure, severity)


def takes_it_whole(script: Script, name: str) -> bool:
    """A launch uses the variable with its last blank, as ``$name:29500``."""
    with_port = re.compile(rf"\$(?:{name}|\{{{name}\}}):")
    for launch in script.launches:
        if with_port.search(launch.as_written.get("rdzv-endpoint", "")):
            return True
        if name == "MASTER_ADDR" and launch.kind == "python" and launch.starter:
            return True
    return False


@TABLE.add("DT206", ERROR, pages.NOT_CONNECTED)
def own_master(script: Script) -> Iterator[Problem]:
    r"""Each node takes its own name as the address

    Inside single quotes the shell of each task replaces $(hostname), so each node
    waits for the others at its own address.

    Cure:
        Set the address once, in the job script, and export it.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        srun -K bash -c 'torchrun --nnodes=2 --nproc-per-node=4 \
          --rdzv-backend=c10d --rdzv-id=$SLURM_JOB_ID \
          --rdzv-endpoint=$(hostname):$((20000 + SLURM_JOB_ID % 9999)) train.py'

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        export head=$(hostname)
        srun -K bash -c 'torchrun --nnodes=2 --nproc-per-node=4 \
          --rdzv-backend=c10d --rdzv-id=$SLURM_JOB_ID \
          --rdzv-endpoint=$head:$((20000 + SLURM_JOB_ID % 9999)) train.py'
    """
    if ONE_OF_THEM.search(script.text):
        return
    for name, text, line in filled_in_by_the_task(script, ADDRESS, "MASTER_ADDR"):
        found = left_to_the_task(script, OWN_NAME, text)
        if found:
            shown = printed_by(text, found)
            what = f"each task replaces `{shown}` by the name of its own node"
            yield Problem(line, what, cure_of_own_master(script, name, shown))
            return


def printed_by(text: str, start: str) -> str:
    """``$(hostname -s)`` of a value, from its first letters."""
    rest = text[text.index(start) :]
    ends = {"$": r"\$\([^()]*\)|\$\{\w+\}|\$\w+", "`": r"`[^`]*`"}
    match = re.match(ends.get(start[0], r"\S+"), rest)
    return match[0] if match else start


def cure_of_own_master(script: Script, name: str, shown: str) -> str:
    """Where to find the address, and where to use it: pbsdsh exports nothing."""
    node = first_node(script)
    if any(launch.starter == "pbsdsh" for launch in script.launches):
        return f'MASTER_ADDR={node} in the job script, and "... $MASTER_ADDR ..."'
    if "-" in name:
        above = f"export MASTER_ADDR={node} in the job script"
        return f"{above}, and $MASTER_ADDR in place of {shown}"
    return f"export {name}={node}   (in the job script, and not in the tasks)"


def filled_in_by_the_task(
    script: Script, names: tuple[str, ...], variable: str
) -> Iterator[tuple[str, str, int]]:
    """Name, value and line of what the shell of each task replaces."""
    for launch in script.launches:
        if not launch.inner or not launch.starter:
            continue
        if launch.starter != "pbsdsh" and (script.step(launch).tasks or 1) < 2:
            continue
        written = launch.as_written
        own = [name for name in names if name in written]
        found = [(name, written[name], launch.line_of(name)) for name in own]
        options = " ".join(text for _, text, _ in found)
        for command in launch.inner:
            for assignment in command.assignments:
                name = assignment.name
                if name == variable or re.search(rf"\$\{{?{name}\b", options):
                    value = assignment.word.value.partition("=")[2]
                    found.append((name, value, assignment.line))
        yield from found


def left_to_the_task(script: Script, pattern: re.Pattern, text: str) -> str | None:
    """What the pattern finds, if the job script's shell hasn't replaced it before."""
    match = pattern.search(text)
    words = [word for command in script.commands for word in command.words]
    words += [launch.file for launch in script.launches if launch.file]
    words += [a.word for some in script.variables.found.values() for a in some]
    quoted = "".join(word.left for word in words)
    if match is None or match[0] not in quoted:
        return None
    return match[0]


@TABLE.add("DT207", WARNING, pages.READ_THE_SCRIPT)
def fixed_port(script: Script) -> Iterator[Problem]:
    """A fixed port

    Two jobs on one node can't both listen at it: "address already in use", or they
    join each other's run.

    Cure:
        Make it from the job's number: port=$((20000 + SLURM_JOB_ID % 10000)). On one
        node: torchrun --standalone.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        export MASTER_ADDR=$(hostname)
        export MASTER_PORT=29500
        srun -K python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        export MASTER_ADDR=$(hostname)
        export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
        srun -K python train.py
    """
    if script.dialect not in SCHEDULED or script.resources.exclusive:
        return
    cure = f"$(({FROM_THE_JOB}))"
    if script.dialect == "pbs":
        cure = f"$(({FROM_THE_PBS_JOB}))"
    found = _port_in_a_variable(script, cure)
    for launch in script.launches:
        one_by_one = launch.in_loop and launch.starter != "remote"
        if launch.option("standalone") is None and not one_by_one:
            found = found or _port_of_an_option(script, launch, cure)
            found = found or _port_by_default(script, launch)
    if found:
        yield found  # the first: one cure is that of all


def _port_in_a_variable(script: Script, cure: str) -> Problem | None:
    """MASTER_PORT=29500, unless the script looks for a free one."""
    if script.uses("ss", "lsof"):
        return None
    for name, assignments in script.variables.found.items():
        value = assignments[-1].word.value.partition("=")[2]
        fixed = re.fullmatch(r"[1-9]\d{3,4}", value) and len(assignments) == 1
        if fixed and re.fullmatch(r"\w*port", name, re.I):
            what = f"`{name}={value}` is the same for all jobs"
            return Problem(assignments[-1].line, what, f"{name}={cure}")
    return None


def _port_of_an_option(script: Script, launch: Launch, cure: str) -> Problem | None:
    """--master-port=29500, or the end of --rdzv-endpoint."""
    for name in (*PORT, "rdzv-endpoint"):
        match = re.search(r"(?:^|:)([1-9]\d{3,4})$", launch.options.get(name, ""))
        if match:
            what = f"port {match[1]} is the same for all jobs"
            export = "export " if match[1] in left_to_its_shell(launch) else ""
            instead = f"{export}port={cure}, and $port in place of {match[1]}"
            if export and launch.starter == "pbsdsh":
                instead = f"{cure} in place of {match[1]}"  # it passes on no variables
            if launch.kind in TORCHRUNS and surely_one_node(script, launch):
                instead = "--standalone"
            return Problem(launch.line_of(name), what, instead)
    return None


def surely_one_node(script: Script, launch: Launch) -> bool:
    """Neither the job nor the launch line leaves room for a second node."""
    unknown = "nodes" in script.resources.options and script.nodes is None
    return not unknown and not script.many_nodes and nnodes_of(script, launch) == 1


def _port_by_default(script: Script, launch: Launch) -> Problem | None:
    """A torchrun on one node that gets no port, and takes one of its own."""
    told = launch.options.keys() & {*ADDRESS, *PORT, "$"}
    if launch.kind != "torchrun" or told:
        return None
    if expects_many(script, launch) or script.nodes != 1:
        return None
    what = f"torchrun without --standalone listens at port {DEFAULT_PORT}"
    return Problem(launch.line, what, "torchrun --standalone ...")


@TABLE.add("DT208", WARNING, pages.RENDEZVOUS)
def fixed_id(script: Script) -> Iterator[Problem]:
    r"""A fixed rendezvous id

    An agent that is left over from another job, or another job at the same address,
    joins a run with the same id.

    Cure:
        --rdzv-id=$SLURM_JOB_ID, or $PBS_JOBID.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        head=$(hostname)
        srun -K torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-id=100 --rdzv-endpoint=$head:$((20000 + SLURM_JOB_ID % 9999)) \
          train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        head=$(hostname)
        srun -K torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d \
          --rdzv-id=$SLURM_JOB_ID \
          --rdzv-endpoint=$head:$((20000 + SLURM_JOB_ID % 9999)) train.py
    """
    if script.dialect not in SCHEDULED:
        return
    for launch in script.launches:
        value = launch.option("rdzv-id")
        if value and "$" not in value and "`" not in value and script.many_nodes:
            own = "$PBS_JOBID" if script.dialect == "pbs" else "$SLURM_JOB_ID"
            what = f"`--rdzv-id={value}` is the same for all jobs"
            yield Problem(launch.line_of("rdzv-id"), what, f"--rdzv-id={own}")
            return


@TABLE.add("DT209", ERROR, pages.NOT_CONNECTED)
def own_port(script: Script) -> Iterator[Problem]:
    r"""Another port or rendezvous id on each node

    Inside single quotes each task draws its own $RANDOM, so no two nodes wait for the
    same run at the same port.

    Cure:
        Choose it once, in the job script: export port=$((20000 + SLURM_JOB_ID %
        10000)).

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        export head=$(hostname) port=$((20000 + SLURM_JOB_ID % 9999))
        srun -K bash -c 'torchrun --nnodes=2 --nproc-per-node=4 \
          --rdzv-backend=c10d --rdzv-id=$RANDOM --rdzv-endpoint=$head:$port \
          train.py'

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        export head=$(hostname) port=$((20000 + SLURM_JOB_ID % 9999))
        srun -K bash -c 'torchrun --nnodes=2 --nproc-per-node=4 \
          --rdzv-backend=c10d --rdzv-id=$SLURM_JOB_ID --rdzv-endpoint=$head:$port \
          train.py'
    """
    names = ("rdzv-id", "rdzv-endpoint", *PORT)
    for name, text, line in filled_in_by_the_task(script, names, "MASTER_PORT"):
        found = left_to_the_task(script, ANY_VALUE, text)
        if found:
            drawn = "$RANDOM" if "RANDOM" in found else found
            what = f"each task replaces `{drawn}` by a value of its own"
            yield Problem(line, what, cure_of_own_port(script, name))
            return


def cure_of_own_port(script: Script, name: str) -> str:
    """Where to choose the value: pbsdsh passes on no exported variable."""
    number = "$PBS_JOBID" if script.dialect == "pbs" else "$SLURM_JOB_ID"
    if name == "rdzv-id":
        return f"--rdzv-id={number}"
    variable = "port" if "-" in name else name
    formula = FROM_THE_PBS_JOB if script.dialect == "pbs" else FROM_THE_JOB
    line = f"{variable}=$(({formula}))"
    if any(launch.starter == "pbsdsh" for launch in script.launches):
        return f'{line} in the job script, and "... ${variable} ..." in double quotes'
    return f"export {line}   (in the job script, and not in the tasks)"


@TABLE.add("DT210", ERROR, pages.READ_THE_SCRIPT)
def job_number_as_port(script: Script) -> Iterator[Problem]:
    """A port above 65535

    Ports end at 65535. Job numbers don't, nor do some formulas with them.

    Cure:
        port=$((20000 + SLURM_JOB_ID % 10000))

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        export MASTER_ADDR=$(hostname)
        export MASTER_PORT=$SLURM_JOB_ID
        srun -K python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        export MASTER_ADDR=$(hostname)
        export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
        srun -K python train.py
    """
    formula = FORMULAS.get(script.dialect, DRAWN)
    told: set[str] = set()
    for name, value, line in ports_of(script):
        largest = largest_port(script, value)
        if largest is None or largest <= LARGEST_PORT or value in told:
            continue
        told.add(value)
        own_line = "" if name.startswith("-") else f"{name}="
        shown = f"{own_line}{value}"
        what = f"`{shown}` is above {LARGEST_PORT}"
        if JOB_NUMBER.fullmatch(value) or largest == NO_END:
            what = f"`{shown}` is no port once it's above {LARGEST_PORT}"
        elif not value.isdigit():
            what = f"`{shown}` goes up to {largest}, and ports end at {LARGEST_PORT}"
        yield Problem(line, what, f"{own_line}$(({formula}))")


def ports_of(script: Script) -> Iterator[tuple[str, str, int]]:
    """Name, value and line of what the script uses as a port."""
    for name, assignments in script.variables.found.items():
        for assignment in assignments:
            if re.fullmatch(r"\w*port", name, re.I) and not assignment.word.array:
                value = assignment.word.value.partition("=")[2]
                yield name, value, assignment.line
    for launch in script.launches:
        for name in (*PORT, "rdzv-endpoint"):
            value = launch.options.get(name, "")
            if name == "rdzv-endpoint":
                match = PORT_OF_ENDPOINT.search(value)
                value = match[1] if match else ""
            if not (JOB_NUMBER.fullmatch(value) and script.variables.sets(MASTER_PORT)):
                yield f"--{name}", value, launch.line_of(name)


def largest_port(script: Script, value: str) -> int | float | None:
    """The largest number that a port may get; None where it isn't sure."""
    return largest_value(value, script.number)
