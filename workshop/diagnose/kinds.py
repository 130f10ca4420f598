"""What kind of line each is: an exception, code of a traceback, or only noise.

Noise is what healthy runs print, too: warnings, a retry, the store's last words when
the rank that holds it has ended first. An exception after which its rank continued is
one that the run survived.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from workshop.diagnose.lines import Line

EXCEPTION, CODE, NOISE, SURVIVED = "exception", "code", "noise", "survived"

NAMED = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Expired|Exit|Timeout)\b"
    r"(?=:|$)|^Exception(?=: |$)|^(?:[a-z_]\w*\.){2,}[A-Z]\w+(?=: )"
)
ANY_NAME = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?=: |:$|$)")
TRACEBACK = re.compile(r"Traceback \(most recent call last\):?\s*$")
FRAME = re.compile(r'^\s+File "[^"]+", line \d+')
# whose message is the traceback of another one, which follows
WRAPPER = re.compile(r": Traceback \(most|: Caught \w+ in (?:DataLoader|replica)")
OF_CXX = re.compile(r"^\s*(?:Exception raised from .* call first|frame #\d+: )")
NOISE_BEGINS = re.compile(r"^--- Logging error ---|^Exception ignored in")
WARNS = re.compile(
    r"^\s*\[W[\d\s:.]|^\s*\[WARNING\]|^W\d{4} |Warning: |^warnings?\.warn\(|"
    r"^\s+warnings\.warn\(|"
    # Open MPI begins with it also where the job "may now hang or fail"
    r"NCCL INFO |^(?:WARNING(?!: Open MPI (?:failed|accepted|detected))|DEBUG|NOTE)\b|"
    r"Setting OMP_NUM|^wandb: (?!ERROR)|"
    r"destroy_process_group\(\) was not called|"
    r"operation involving a call to the|.fork\(\). system call to create|"
    r"error initializing an OpenFabrics device|"
    r"Unable to register cu\w+ factory|, (?:will continue|continuing)\b|"
    r"^ERROR: ld\.so: object .*: ignored\.|\bCannot use FA version \d|"
    r"\b(?:fallback|falling back) to\b|, skipping\b|\bNetwork error resolved\b|"
    r"file_system_monitor\.cc.* is over \d+% full|"
    r'NCCL WARN (?:Failed to open libibverbs|Missing "|.*[Pp]lugin.*(?:not found|No pl)'
    r"|NET/Plugin|NET/OFI Only \w+ provider|MSCCL|Could not find|Unable to open)"
)
# A run that begins has no checkpoint yet. Trainers look for one, and say so.
NO_CHECKPOINT = re.compile(
    r"^\s*=> no (?:\w+ )?checkpoints? found\b|\bno existing checkpoints? found\b|"
    r"^(?!.*\b(?:abort\w*|exiting|fail\w*|cannot (?:start|train|continue)|must)\b)"
    r"(?=.*\b(?:checkpoint|snapshot|ckpt))"
    r"(?=.*(?:\bno\b|\bnot (?:found|find|exist)|n't (?:found|find|exist)|missing))"
    r".*\b(?:from scratch|(?:epoch|step) 0|the (?:beginning|start)|random\w*|"
    r"(?:a|fresh) new (?:run|training)|starting fresh)\b",
    re.IGNORECASE,
)
TRIES_AGAIN = re.compile(
    r"\b(?:retry(?:ing)?|re-?trying|trying again|try(?:ing)? again in|reconnecting)\b|"
    r"\battempt \d+(?: of |/)\d+|"
    r"\b(?:trying|decreasing|reducing|halving) (?:the |a smaller )?batch[ _-]size\b|"
    r"(?:batch|memory|\bOOM\b).*\b(?:trying|reducing|decreasing|lowering|halving)\b.*\d",
    re.IGNORECASE,
)
GIVES_UP = re.compile(
    r"giv(?:ing|es?) up|exceeded|exhausted|no more|last attempt", re.I
)
PROGRESS = re.compile(
    r"\b(?:step|epoch|iter(?:ation)?|batch|global_step)\b[\"']?\W{0,4}\d|\d%\|", re.I
)
FINISHED = re.compile(
    r"\b(?:done|finished|completed?|saved|successful(?:ly)?|succeeded|took over)\b|"
    r"\btrain_runtime\b|\bmax_(?:epochs|steps)=\d+\W? reached",
    re.I,
)
# what torchrun's agent says when a signal ends it, as a warning
DEATH = re.compile(r"Received (?:\d+|Signals\.\w+) death signal")
# what trainers print when the run as a whole has come to its end
RUN_ENDS = re.compile(
    r"\btraining (?:is |has )?(?:done|finished|completed?|ended)\b|"
    r"\b(?:finished|completed) training\b|"
    r"\btrain_runtime\b|\bmax_(?:epochs|steps)=\d+\W? reached",
    re.I,
)
# what a library logs and may survive, unless it says that a partner was lost
LOGGED = re.compile(
    r"^(?!.*(?:ProcessGroup|peer)).*(?:\bERROR\b|NCCL WARN)|^fatal: not a git repo"
)
LOGGED_AS = ("ERROR", "CRITICAL", "FATAL")
# what NCCL says when a network isn't there, before it takes another one
NO_NETWORK = re.compile(
    r"NCCL WARN NET/(?:OFI|IB|Plugin)\b.*(?:init\w* failed|"
    r"[Nn]o device|Unable to (?:find|open))"
)
# a process of NCCL, and that it has its communicator
OF_NCCL = re.compile(r"^([\w.-]+:\d+):\d+ \[\d+\] ")
HAS_COMMUNICATOR = "Init COMPLETE"
STEPS = 2  # that prove that a rank worked on
# The run as a whole has failed: a rank that continued did not reach its end
ENDS = re.compile(
    r"ChildFailedError|failed \(exitcode|exits with return code|srun: error|"
    r"core dumped|slurmstepd: error|exited on signal|Root Cause|terminated with|"
    r"\bKilled$|OOMKilled|^Segmentation fault|BAD TERMINATION OF|"
    r"\brank \d+ (?:died from signal|exited with code [1-9])"
)
RESTARTS = re.compile(r"\bwill restart worker group")
REQUEUED = re.compile(r"DUE TO (?:JOB REQUEUE|PREEMPTION|NODE FAIL)")
GROUP_ENDS = re.compile(r"\bworker group successfully finished")
# lines of an attempt that failed, apart from its exceptions
OF_ATTEMPT = re.compile(
    r"\bERROR\b|\[E\d* |^E\d{4} |^\s*what\(\): |^terminate called|"
    r"\bfailed \(exitcode|NCCL WARN|Worker group FAILED|closing signal"
)
BAD_END = re.compile(
    r"not |n't |fail|error|never|unfinished|"
    # the message of an error explains: what was saved, and when it would be right
    r"\bsaved (?:during|metadata|tensors?|with|by|under|from|for)\b|"
    r"\b(?:before|until|unless|only|if|whether|should|must|could)\b",
    re.IGNORECASE,
)


@dataclass
class Reading:
    """Where in a traceback a rank is."""

    inside: bool = False
    ready: bool = False  # the line before was a frame or its code
    noise: bool = False


def tell_kinds(lines: list[Line]) -> list[Line]:
    """The same lines, each with its kind."""
    of_rank: dict[int | None, Reading] = {}
    told = [
        replace(line, kind=kind_of(line, of_rank.setdefault(line.rank, Reading())))
        for line in lines
    ]
    told = take_other_network(try_again(told))
    told = [
        replace(line, kind=SURVIVED)
        if line.kind == EXCEPTION and went_on(told, number)
        else line
        for number, line in enumerate(told)
    ]
    return survive_restarts(survive_logged(work_on(told)))


def try_again(lines: list[Line]) -> list[Line]:
    """The same lines: a rank's next line says that what failed in it is tried again."""
    told: list[Line] = []
    following: dict[int | None, Line] = {}
    for line in reversed(lines):
        follower = following.get(line.rank)
        following[line.rank] = line
        if follower is not None and says_it_tries_again(follower.text):
            line = tried_again(line)
        told.append(line)
    return told[::-1]


def tried_again(line: Line) -> Line:
    if line.kind == EXCEPTION:
        return replace(line, kind=SURVIVED)
    if line.kind or ENDS.search(line.text):
        return line
    return replace(line, kind=NOISE)


def take_other_network(lines: list[Line]) -> list[Line]:
    """The same lines: what NCCL warned of before a process had its communicator."""
    complete: dict[str, int] = {}
    for number, line in enumerate(lines):
        process = OF_NCCL.match(line.text)
        if process and HAS_COMMUNICATOR in line.text:
            complete.setdefault(process[1], number)
    return [
        replace(line, kind=NOISE) if warned_before(line, number, complete) else line
        for number, line in enumerate(lines)
    ]


def warned_before(line: Line, number: int, complete: dict[str, int]) -> bool:
    """Whether NCCL warns in this line, and the process has a communicator later."""
    process = OF_NCCL.match(line.text)
    warns = "NCCL WARN" in line.text and "async" not in line.text
    return bool(process) and warns and number < complete.get(process[1], 0)


def work_on(lines: list[Line]) -> list[Line]:
    """The same lines: after what a program logged as an error, its rank took steps."""
    told: list[Line] = []
    steps: dict[int | None, int] = {}
    for line in reversed(lines):
        if steps.get(line.rank, 0) >= STEPS and is_logged_by_program(line):
            line = replace(line, kind=SURVIVED)
        if PROGRESS.search(line.text):
            steps[line.rank] = steps.get(line.rank, 0) + 1
        told.append(line)
    return told[::-1]


def is_logged_by_program(line: Line) -> bool:
    """Whether a program logged an error, or NCCL that it takes another network."""
    if line.kind or ENDS.search(line.text):
        return False
    if "NCCL WARN" in line.text:
        return bool(NO_NETWORK.search(line.text))
    if line.level in LOGGED_AS:
        return "peer" not in line.text
    return bool(LOGGED.search(line.text))


def survive_restarts(lines: list[Line]) -> list[Line]:
    """The same lines: torchrun or Slurm started the ranks again, and they finished."""
    restarts = [n for n, line in enumerate(lines) if starts_again(line)]
    last = max(restarts, default=-1)
    later = lines[last + 1 :]
    if not restarts or not any(is_end_of_run(line) for line in later):
        return lines
    if any(line.kind == EXCEPTION or ENDS.search(line.text) for line in later):
        return lines
    return [outlived(line) for line in lines[: last + 1]] + later


def starts_again(line: Line) -> bool:
    return bool(RESTARTS.search(line.text) or REQUEUED.search(line.text))


def is_end_of_run(line: Line) -> bool:
    if GROUP_ENDS.search(line.text):
        return True
    return bool(RUN_ENDS.search(line.text)) and not BAD_END.search(line.text)


def outlived(line: Line) -> Line:
    """A line of an attempt that failed, with its kind if it tells of a failure."""
    ended = OF_ATTEMPT.search(line.text) or REQUEUED.search(line.text)
    logged = not line.kind and ended
    if line.kind != EXCEPTION and not logged:
        return line
    return replace(line, kind=SURVIVED)


def survive_logged(lines: list[Line]) -> list[Line]:
    """The same lines: after what a library logged, its rank came to the run's end."""
    told: list[Line] = []
    ended: set[int | None] = set()  # ranks that a later line saw at the end
    for line in reversed(lines):
        if line.kind == EXCEPTION or ENDS.search(line.text):
            break
        if RUN_ENDS.search(line.text) and not BAD_END.search(line.text):
            ended.add(line.rank)
        logged = not line.kind and LOGGED.search(line.text)
        if logged and line.rank in ended:
            line = replace(line, kind=SURVIVED)
        told.append(line)
    return [*lines[: len(lines) - len(told)], *reversed(told)]


def kind_of(line: Line, at: Reading) -> str:
    text = line.text
    if NOISE_BEGINS.search(text):
        at.noise = True
        return NOISE
    if OF_CXX.match(text):
        return CODE
    if TRACEBACK.search(text):
        at.inside, at.ready = True, False
        return NOISE if at.noise else ""
    if at.inside and FRAME.match(text):
        at.ready = True
        return CODE
    if at.inside and at.ready and text.startswith((" ", "[Previous line")):
        return CODE
    if NAMED.match(text) or (at.inside and at.ready and ANY_NAME.match(text)):
        return end_of(text, at)
    if is_harmless(line):
        return NOISE
    if text.strip():
        at.ready = False
    return ""


def end_of(text: str, at: Reading) -> str:
    """The kind of the line that ends a traceback."""
    noise = at.noise
    at.inside, at.ready, at.noise = False, False, False
    if noise or says_it_tries_again(text):
        return NOISE
    if re.match(r"^[\w.]*Warning: ", text):
        return NOISE
    return "" if WRAPPER.search(text) else EXCEPTION


def is_harmless(line: Line) -> bool:
    """A warning, or a try that isn't the last one."""
    if DEATH.search(line.text):
        return False
    if line.level in ("DEBUG", "WARN", "WARNING") or WARNS.search(line.text):
        return True
    if NO_CHECKPOINT.search(line.text):
        return True
    return says_it_tries_again(line.text)


def says_it_tries_again(text: str) -> bool:
    return bool(TRIES_AGAIN.search(text)) and not GIVES_UP.search(text)


def went_on(lines: list[Line], number: int) -> bool:
    """Whether the rank of this exception worked on after it, and to a good end."""
    rank = lines[number].rank
    later = [line for line in lines[number + 1 :] if line.rank == rank]
    if any(line.kind == EXCEPTION for line in later):
        return False
    if rank is None and any(ENDS.search(line.text) for line in lines[number + 1 :]):
        return False
    steps = [line for line in later if PROGRESS.search(line.text)]
    ends = [
        line
        for line in later
        if FINISHED.search(line.text) and not BAD_END.search(line.text)
    ]
    return bool(ends) or (rank is not None and len(steps) >= STEPS)
