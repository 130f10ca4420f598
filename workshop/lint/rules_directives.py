"""Rules about the lines that the scheduler reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .counts import ranks_of
from .directives import MARKS, OTHERS
from .rule import ERROR, NOTE, WARNING, Problem, Table
from .script import Script

TABLE = Table()
OPTION = r"--?[A-Za-z]"
MISSPELLED = {
    "slurm": re.compile(
        rf"#\s*(SBATH|SBTACH|SBACTH|SBTCH|SBATCHS|SABTCH)\s+{OPTION}", re.I
    ),
    "pbs": re.compile(rf"#\s*(PSB|BPS|PBSS)\s+{OPTION}", re.I),
}
A_SCRIPT = re.compile(r"\s[\w./-]+\.(sh|slurm|sbatch|bash|job|pbs|batch)\b")
TOOLS = {"slurm": "sbatch", "pbs": "qsub", "lsf": "bsub"}
OPTION_ALONE = re.compile(r"--?[A-Za-z][\w-]*")
CORES_OF_A_NODE, GPUS_OF_A_NODE = 48, 4  # less may be half of one
CHUNK_RESOURCES = ("ncpus", "ngpus", "mem", "mpiprocs")


def marks_of(script: Script) -> str:
    return MARKS.get(script.dialect, "")


@TABLE.add("DT001", ERROR, pages.READ_THE_SCRIPT)
def directive_below_a_command(script: Script) -> Iterator[Problem]:
    """A directive below the first command

    sbatch and qsub stop reading directives at the first command. Whatever comes later
    is a comment, and no message says so.

    Cure:
        Move it above the first command of the script.

    Bad:
        #!/bin/bash
        #SBATCH --time=1:00:00
        module load cuda
        #SBATCH --gpus=4
        srun ./job.sh

    Good:
        #!/bin/bash
        #SBATCH --time=1:00:00
        #SBATCH --gpus=4
        module load cuda
        srun ./job.sh
    """
    if script.dialect not in ("slurm", "pbs"):
        return
    asked = script.resources.options
    for directive in script.directives:
        again = all(
            asked.get(name) and asked[name].options[name] == value
            for name, value in directive.options.items()
        )  # also if there is no option in it
        if directive.late and not again:
            first = min(c.line for c in script.commands if not c.captured)
            shown = f"{marks_of(script)} {directive.text}"
            what = (
                f"{TOOLS[script.dialect]} ignores `{shown}`, because line {first} is "
                "already a command"
            )
            cure = f"move `{shown}` above line {first}"
            yield Problem(directive.line, what, cure)


@TABLE.add("DT002", ERROR, pages.READ_THE_SCRIPT)
def misspelled_directive(script: Script) -> Iterator[Problem]:
    """A misspelled directive

    Only #SBATCH and #PBS, in capitals and spelled like this, are directives. Anything
    else is a comment, and the job gets the defaults instead.

    Cure:
        Write #SBATCH or #PBS.

    Bad:
        #!/bin/bash
        #sbatch --nodes=2
        srun ./job.sh

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        srun ./job.sh
    """
    for number, line in enumerate(script.lines, 1):
        for dialect, mark in (("slurm", "#SBATCH"), ("pbs", "#PBS")):
            small = re.match(rf"{mark}\s+{OPTION}", line, re.I)
            wrong = MISSPELLED[dialect].match(line)
            a_command = A_SCRIPT.search(line)  # a note how to submit it
            if a_command or number in script.embedded:
                continue
            if (small and not line.startswith(mark)) or wrong:
                word = line.split(" -")[0].strip()
                options = line[line.index("-") :].strip()
                what = f"`{word}` isn't `{mark}`, so {TOOLS[dialect]} ignores this line"
                yield Problem(number, what, f"{mark} {options}")


@TABLE.add("DT003", WARNING, pages.READ_THE_SCRIPT)
def space_in_a_directive(script: Script) -> Iterator[Problem]:
    """A directive with a space after the #

    `# SBATCH` is a comment. If you switched the line off on purpose, `##SBATCH` shows
    that to the next reader.

    Cure:
        Remove the space, or write ## to switch the line off.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        # SBATCH --time=1:00:00
        srun ./job.sh

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        ##SBATCH --time=1:00:00
        srun ./job.sh
    """
    for number, line in enumerate(script.lines, 1):
        match = re.match(rf"#\s+(SBATCH|PBS)\s+(?={OPTION})", line)
        if match is None or number in script.embedded:
            continue
        mark, options = f"#{match[1]}", line[match.end() :]
        if not repeated(script, options):
            what = f"`{line.strip()}` is a comment, not a directive"
            yield Problem(number, what, f"{mark} {options}   (or ##{match[1]} ...)")


def repeated(script: Script, options: str) -> bool:
    """A live directive sets the same option: this line is switched off on purpose."""
    from .directives import read_options, split_words

    names = read_options(split_words(options), script.dialect)
    return any(name in script.resources.options for name in names)


@TABLE.add("DT004", ERROR, pages.READ_THE_SCRIPT)
def blanks_around_equals(script: Script) -> Iterator[Problem]:
    """Blanks around the = of a directive

    An option ends at a blank, so the scheduler reads = as its value, or the value as
    the name of a script, and refuses the job.

    Cure:
        Write --option=value without blanks.

    Bad:
        #!/bin/bash
        #SBATCH --nodes = 2
        srun ./job.sh

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        srun ./job.sh
    """
    if script.dialect != "slurm":
        return
    for directive in script.directives:
        text = directive.text.split(" #")[0]
        match = re.search(r"(?<!\S)(--[\w-]+)(\s+=\s*|=\s+(?=[^-\s]))(\S+)", text)
        if match and not directive.late:
            fixed = text.replace(match[0], f"{match[1]}={match[3]}")
            what = f"`{match[0]}` has a blank beside its `=`"
            yield Problem(directive.line, what, f"{marks_of(script)} {fixed}")


@TABLE.add("DT005", WARNING, pages.READ_THE_SCRIPT)
def variable_in_a_directive(script: Script) -> Iterator[Problem]:
    """A shell variable in an #SBATCH line

    No shell reads these lines: sbatch takes $HOME as five characters, and the job may
    end without any output.

    Cure:
        Use sbatch's patterns (%j is the job's number, %x its name, %u the user), or
        give the option on the command line.

    Bad:
        #!/bin/bash
        #SBATCH --output=$HOME/logs/train.out
        srun ./job.sh

    Good:
        #!/bin/bash
        #SBATCH --output=logs/%x-%j.out
        srun ./job.sh
    """
    if script.dialect != "slurm":
        return
    for directive in script.directives:
        text = directive.text.split(" #")[0]
        match = re.search(r"\$\{?[A-Za-z_]\w*\}?", text)
        if match and not directive.late and not re.match(r"--?(comment|wrap)", text):
            what = f"sbatch doesn't replace `{match[0]}` in `{text.strip()}`"
            yield Problem(directive.line, what)


@TABLE.add("DT006", ERROR, pages.SLURM_MISTAKES)
def no_interpreter(script: Script) -> Iterator[Problem]:
    """The first line isn't #!

    sbatch refuses it: "This does not look like a batch script".

    Cure:
        Make #!/bin/bash the first line of the file, with nothing above it.

    Bad:
        #SBATCH --nodes=2
        srun ./job.sh

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        srun ./job.sh
    """
    live = [d for d in script.directives if script.dialect == "slurm"]
    if live and not script.lines[0].startswith("#!"):
        first = script.lines[0].strip() or "an empty line"
        yield Problem(1, f"the first line is `{first}`", "#!/bin/bash   (as line 1)")


@TABLE.add("DT007", ERROR, pages.SLURM_MISTAKES)
def windows_lines(script: Script) -> Iterator[Problem]:
    """Windows line endings

    sbatch and qsub refuse such a script, and bash reads the carriage return as a part
    of the last word.

    Cure:
        sed -i 's/\\r$//' SCRIPT

    Bad:
        #!/bin/bash\r
        #SBATCH --nodes=2\r
        srun ./job.sh\r

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        srun ./job.sh
    """
    count = script.text.count("\r\n")
    if count:
        plural = "s" if count > 1 else ""
        at = script.text[: script.text.index("\r\n")].count("\n") + 1
        cure = f"sed -i 's/\\r$//' {script.name}"
        what = f"{count} line{plural} with a carriage return (\\r) at the end"
        yield Problem(at, what, cure)


@TABLE.add("DT008", ERROR, pages.PBS_MISTAKES)
def comment_behind_a_directive(script: Script) -> Iterator[Problem]:
    """A comment after a #PBS directive

    OpenPBS reads the comment as more options and refuses the job: "directive error".

    Cure:
        Put the comment on a line of its own.

    Bad:
        #!/bin/bash
        #PBS -l select=2:ncpus=8 # two hosts
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        ./job.sh

    Good:
        #!/bin/bash
        # two hosts
        #PBS -l select=2:ncpus=8
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        ./job.sh
    """
    if script.dialect != "pbs" or script.is_torque:
        return
    for directive in script.directives:
        match = re.search(r"\s#.*$", directive.text)
        if match and not directive.late:
            kept = directive.text[: match.start()].strip()
            what = f"qsub reads `{match[0].strip()}` as a part of the directive"
            yield Problem(directive.line, what, f"#PBS {kept}")


@TABLE.add("DT009", ERROR, pages.PBS_EVERY_HOST)
def two_requests(script: Script) -> Iterator[Problem]:
    """Two ways to ask PBS for hosts in one script

    `select` is PBS's form with ncpus and ngpus, `nodes=N:ppn=M` is Torque's, and
    `ncpus=` alone asks for the whole job. PBS refuses a mixture of them.

    Cure:
        Keep one of them: #PBS -l select=N:ncpus=C:ngpus=G and #PBS -l place=scatter.

    Bad:
        #!/bin/bash
        #PBS -l select=2:ncpus=16
        #PBS -l nodes=2:ppn=16
        cd $PBS_O_WORKDIR
        ./job.sh

    Good:
        #!/bin/bash
        #PBS -l select=2:ncpus=16
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        ./job.sh
    """
    asked = script.resources
    if "l select" not in asked.options or script.dialect != "pbs":
        return
    chunks = asked.value("l select")
    if re.search(r":ppn=\d", chunks):
        what = f"`ppn` in `select={chunks}` is of Torque's form: PBS knows no such name"
        fixed = chunks.replace("ppn=", "ncpus=").replace(":gpus=", ":ngpus=")
        yield Problem(asked.line("l select"), what, f"#PBS -l select={fixed}")
    for name in ("nodes", *CHUNK_RESOURCES):
        if f"l {name}" in asked.options:
            line = asked.line(f"l {name}")
            select = asked.line("l select")
            text = f"-l {name}={asked.value(f'l {name}')}"
            what = f"`{text}` can't stand beside the `-l select` of line {select}"
            yield Problem(line, what, f"remove `{text}`, or say it in the select")


@TABLE.add("DT010", WARNING, pages.PBS_EVERY_HOST)
def no_scatter(script: Script) -> Iterator[Problem]:
    r"""Several chunks without place=scatter

    PBS may put several chunks on one host if they fit there. Then the job has fewer
    hosts than the launch line expects.

    Cure:
        #PBS -l place=scatter

    Bad:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=1
        cd $PBS_O_WORKDIR
        head=$(head -n 1 $PBS_NODEFILE)
        port=$((20000 + ${PBS_JOBID%%.*} % 9999))
        mpirun -np 2 --map-by ppr:1:node torchrun --nnodes=2 --nproc-per-node=4 \
          --rdzv-backend=c10d --rdzv-endpoint=$head:$port train.py

    Good:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=1
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        head=$(head -n 1 $PBS_NODEFILE)
        port=$((20000 + ${PBS_JOBID%%.*} % 9999))
        mpirun -np 2 --map-by ppr:1:node torchrun --nnodes=2 --nproc-per-node=4 \
          --rdzv-backend=c10d --rdzv-endpoint=$head:$port train.py
    """
    asked = script.resources
    spread = "scatter" in asked.value("l place") or asked.exclusive
    several = script.dialect == "pbs" and script.many_nodes and asked.value("l select")
    starts = any(launch.starter for launch in script.launches)
    if not several or not starts or spread or is_whole_node(asked.value("l select")):
        return
    what = f"`select={asked.value('l select')}` may be placed on one host"
    cure = "#PBS -l place=scatter   (one more line)"
    hosts = hosts_expected(script)
    if hosts:
        what = (
            f"`select={asked.value('l select')}` may be placed on any number of hosts, "
            f"and the launch line expects {hosts}"
        )
        request = joined_chunks(asked.value("l select"), hosts)
        cure = f"#PBS -l select={request} and #PBS -l place=scatter"
    yield Problem(asked.line("l select"), what, cure)


def is_whole_node(select: str) -> bool:
    """No host has room for two of these chunks: four GPUs and most of the cores."""
    found = dict(re.findall(r"(ncpus|ngpus)=(\d+)", select))
    cores, gpus = int(found.get("ncpus", 0)), int(found.get("ngpus", 0))
    return cores >= CORES_OF_A_NODE and gpus >= GPUS_OF_A_NODE and "+" not in select


def hosts_expected(script: Script) -> int | None:
    """The nodes of the launch line, if chunks with fewer GPUs make them up."""
    chunks, gpus = script.nodes, script.resources.gpus_per_node
    for launch in script.launches:
        hosts = script.number(launch.option("nnodes", "num-machines"))
        ranks = ranks_of(script, launch)
        if not chunks or not gpus or not hosts or not ranks or hosts >= chunks:
            continue
        if hosts * ranks == chunks * gpus and chunks % hosts == 0:
            return hosts
    return None


def joined_chunks(select: str, hosts: int) -> str:
    """``8:ncpus=8:ngpus=1`` on two hosts is ``2:ncpus=32:ngpus=4``."""
    chunks, _, rest = select.partition(":")
    each = int(chunks) // hosts

    def enlarged(match: re.Match) -> str:
        return f"{match[1]}={int(match[2]) * each}"

    joined = re.sub(r"(ncpus|ngpus|mem)=(\d+)", enlarged, rest)
    return f"{hosts}:{joined}"


@TABLE.add("DT011", NOTE, pages.LINT_LSF)
def script_for_another(script: Script) -> Iterator[Problem]:
    """A script for another scheduler

    The options of LSF, Grid Engine and Flux aren't known here, so counts of hosts,
    tasks and GPUs aren't checked. Of a manifest for Kubernetes, nothing is.

    Cure:
        Nothing to change: the launch lines were checked all the same.

    Bad:
        #!/bin/bash
        #BSUB -nnodes 2
        jsrun -n 2 python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        srun --kill-on-bad-exit=1 python train.py
    """
    names = {
        "lsf": ("LSF", "#BSUB"),
        "sge": ("Grid Engine", "#$"),
        "flux": ("Flux", "#flux:"),
    }
    if script.dialect == "kubernetes":
        what = "this is a manifest for Kubernetes, no job script: nothing was checked"
        on_purpose = script.name.endswith((".yaml", ".yml"))
        severity = NOTE if on_purpose else WARNING
        yield Problem(1, what, f"kubectl apply -f {script.name}", severity)
    if script.dialect not in names:
        return
    name, mark = names[script.dialect]
    line = first_directive(script)
    yield Problem(line, f"this script is for {name}, whose {mark} lines aren't read")


def first_directive(script: Script) -> int:
    if script.directives:
        return script.directives[0].line
    pattern = OTHERS[script.dialect]
    numbered = enumerate(script.lines, 1)
    own = [n for n, line in numbered if pattern.match(line)]
    return next(n for n in own if n not in script.embedded)


@TABLE.add("DT012", ERROR, pages.PBS_COPIED)
def broken_continuation(script: Script) -> Iterator[Problem]:
    r"""A command that ends before its last options

    Only a backslash that is the very last character continues a line. Without it, with
    a blank or a comment after it, or with a comment line in between, the command ends
    there and bash runs the rest as commands of their own.

    Cure:
        End every line of the command but the last with a backslash, with nothing after
        it, and put comments above the command.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        python train.py \ # on one node
          --epochs 10

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        # on one node
        python train.py \
          --epochs 10
    """
    starts = {word.line for command in script.commands for word in command.words}
    told: list[int] = []
    for number, line in enumerate(script.lines, 1):
        behind = re.search(r"(?<=\s)\\([ \t]+(#.*)?)$", line)
        after = script.lines[number : number + 1]
        if behind and number in starts and not line.lstrip().startswith("#"):
            said = behind[2] or "a blank"
            what = f"the line doesn't continue: `{said}` is after the backslash"
            if not behind[2]:
                what = "the line doesn't continue: a blank is after the backslash"
            told.append(number)
            yield Problem(number, what, line[: behind.start()] + "\\")
        elif comment_between(line, after, number, starts, script):
            what = (
                f"the comment `{after[0].strip()}` ends the command, so bash runs the "
                "next line as a command of its own"
            )
            told.append(number + 1)
            yield Problem(number + 1, what, "move the comment above the command")
    yield from options_alone(script, told)


def options_alone(script: Script, told: list[int]) -> Iterator[Problem]:
    """Commands that begin with an option, except those below a line told before."""
    for command in script.commands:
        option = OPTION_ALONE.match(command.words[0].raw) if command.words else None
        if option is None or "case" in command.blocks:
            continue
        above = [line for line in told if line < command.line]
        if above and only_comments(script.lines[above[-1] : command.line - 1]):
            continue
        what = f"bash runs `{option[0]}` as a command of its own"
        cure = "end the line above with a backslash, and leave no empty line in between"
        yield Problem(command.line, what, cure)
        return


def only_comments(lines: list[str]) -> bool:
    return all(line.lstrip().startswith("#") for line in lines)


def comment_between(
    line: str, after: list[str], number: int, starts: set[int], script: Script
) -> bool:
    """``command \\``, then a comment, then a line of options."""
    if not line.endswith("\\") or line.lstrip().startswith("#") or number not in starts:
        return False
    if not after or not after[0].lstrip().startswith("#"):
        return False
    rest = (text.strip() for text in script.lines[number + 1 :])
    following = next((text for text in rest if not text.startswith("#")), "")
    return following.startswith("-")


@TABLE.add("DT014", WARNING, pages.READ_THE_SCRIPT)
def two_numbers_of_tasks(script: Script) -> Iterator[Problem]:
    """--ntasks beside a larger --ntasks-per-node

    --ntasks is the number of tasks of the whole job, and it wins. --ntasks-per-node is
    then only a maximum.

    Cure:
        Keep --nodes and --ntasks-per-node, and leave --ntasks out.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks=2
        #SBATCH --ntasks-per-node=4
        srun -K ./job.sh

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K ./job.sh
    """
    asked, nodes = script.resources, script.nodes
    tasks, per_node = asked.tasks, asked.tasks_per_node
    if script.dialect != "slurm" or not nodes or not tasks or not per_node:
        return
    if tasks <= nodes * (per_node - 1):
        what = (
            f"the job has {tasks} tasks, not {nodes * per_node}: `--ntasks={tasks}` "
            f"beats the `--ntasks-per-node={per_node}` of line "
            f"{asked.line('ntasks-per-node')}"
        )
        cure = f"remove `--ntasks={tasks}`, or ask for --ntasks-per-node=1"
        if tasks % nodes == 0:
            each = tasks // nodes
            cure = f"remove `--ntasks={tasks}`, or ask for --ntasks-per-node={each}"
        yield Problem(asked.line("ntasks"), what, cure)
