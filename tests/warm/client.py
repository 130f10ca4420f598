"""What `python` is while tests run: hands its start over to a server that has torch.

The wrapper which `tests/warm` writes runs this file by ``python -I -S`` (10 ms) and
has set two names: ``SOCKET`` and ``COLD``, the server and the interpreter to become
where there is none. The program runs in a fork of the server. This process stays: it
holds the place of the program among its caller's children, passes signals on, and ends
as the program ends. A fork of it, the witness, says which signals the whole group got.

Only modules that load fast are imported here: `socket`, `signal` and `json` would
double the time that this takes.
"""

import _signal
import _socket
import array
import marshal
import os
import resource
import select
import sys

FORWARDED = (
    *(_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT),
    *(_signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGALRM, _signal.SIGCONT),
)
# Options of Python that a warm start can obey; terms.py reads them.
KNOWN = ("-c", "-m", "-u", "-B", "-W", "-X")
MOST_FILES = 252  # that one message can carry, beside the witness's
LIMITS = tuple(n for name, n in vars(resource).items() if name.startswith("RLIMIT_"))


def main(place: str, cold: str) -> None:
    """Run `sys.argv[1:]` warm, else become a cold Python."""
    arguments = sys.argv[1:]
    note(os.path.dirname(place), arguments)
    option = arguments[0] if arguments else "-"
    unknown = option.startswith("-") and option not in KNOWN
    # Whoever reads a terminal may ask whose terminal it is: this session's.
    if unknown or os.isatty(0) or os.environ.get("COLD_PYTHON"):
        become_cold(cold, arguments)
    files = open_files()
    if len(files) > MOST_FILES:
        become_cold(cold, arguments)
    dispositions = {int(s): _signal.getsignal(s) for s in FORWARDED}
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, FORWARDED)
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    ours, theirs = _socket.socketpair()
    witness = start_witness(ours, [*files, server.fileno(), theirs.fileno()])
    try:
        server.connect(place)
        described = description(arguments, files, dispositions, mask)
        send(server, described, [*files, theirs.fileno()])
        theirs.close()
        warm = server.recv(1) == b"W"
    except OSError:
        warm = False
    if not warm:
        server.close()
        theirs.close()
        os.waitpid(witness, 0)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        become_cold(cold, arguments)
    status = stand_in(server)
    os.waitpid(witness, 0)  # it ends with the watcher
    end_like(status)


def note(folder: str, arguments: list) -> None:
    """Write down which program starts, warm or cold; tools/run_tests.py reads it."""
    scripts = [word for word in arguments if word.endswith(".py")]
    if not scripts or "--help" in arguments:
        return
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        number = os.open(folder + "/started", flags, 0o666)
        os.write(number, os.fsencode(os.path.basename(scripts[0]) + "\n"))
        os.close(number)
    except OSError:  # a host of its own may not see the folder, or files may be small
        return


def become_cold(cold: str, arguments: list) -> None:
    os.execv(cold, [cold, *arguments])


def open_files() -> list:
    """The numbers of all files that this process was started with."""
    numbers = []
    for text in os.listdir("/proc/self/fd"):  # and the listing itself, closed by now
        try:
            os.fstat(int(text))
        except OSError:
            continue
        numbers.append(int(text))
    return sorted(numbers)


def description(arguments, files, dispositions, mask) -> dict:
    """Everything that a process inherits, but for the open files themselves."""
    umask = os.umask(0)
    os.umask(umask)
    return {
        "arguments": arguments,
        "name": os.path.abspath(sys.argv[0]),
        "files": files,
        "environment": {os.fsdecode(k): os.fsdecode(v) for k, v in os.environb.items()},
        "folder": os.getcwd(),
        "umask": umask,
        "limits": [(number, *resource.getrlimit(number)) for number in LIMITS],
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "cores": list(os.sched_getaffinity(0)),
        "ids": [os.getresuid(), os.getresgid()],
        "groups": os.getgroups(),
        "ignored": [s for s, action in dispositions.items() if action == 1],
        "mask": [int(number) for number in mask],
        "leads_session": os.getsid(0) == os.getpid(),
        "leads_group": os.getpgrp() == os.getpid(),
    }


def send(server, described: dict, files: list) -> None:
    body = marshal.dumps(described)
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", files))
    server.sendmsg([len(body).to_bytes(4, "little")], [rights])
    server.sendall(body)


def start_witness(line, others: list) -> int:
    """Fork a process into this one's group that reports signals and answers questions.

    Who signals the group reaches both processes, who signals this one doesn't reach the
    witness. It has no open file but `line`, and ends when the other end is closed.
    """
    witness = os.fork()
    if witness:
        line.close()
        return witness
    for number in others:
        os.close(number)
    hide_command_line()
    send_signals_to(line)
    while question := receive(line):
        line.send(question)
    os._exit(0)


def hide_command_line() -> None:
    """`pgrep -f` finds the program once, at the place where this process stands in."""
    try:
        with open("/proc/self/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end: proc(5)
        with open("/proc/self/mem", "r+b", 0) as memory:
            memory.seek(start)
            memory.write(b"witness".ljust(end - start, b"\0"))
    except OSError:  # a host without /proc
        return


def send_signals_to(line) -> None:
    """From now on, the kernel's part of a signal handler writes its number there."""
    line.setblocking(False)
    sys.unraisablehook = lambda _: None  # the other end may have closed it just now
    _signal.set_wakeup_fd(line.fileno(), warn_on_full_buffer=False)
    for number in FORWARDED:
        _signal.signal(number, lambda *_: None)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, FORWARDED)


def receive(line) -> bytes:
    """The next byte; none when the other end is closed."""
    ready = select.poll()
    ready.register(line, select.POLLIN)
    ready.poll()
    try:
        return line.recv(1)
    except OSError:
        return b""


def stand_in(server) -> int:
    """Pass signals on until the program has ended; its wait status."""
    send_signals_to(server)
    ended = select.poll()
    ended.register(server, select.POLLIN)
    ended.poll()
    try:
        status = server.recv(4)
    except OSError:
        status = b""
    _signal.set_wakeup_fd(-1)
    # A server that is gone has taken the program along.
    return int.from_bytes(status, "little") if len(status) == 4 else _signal.SIGKILL


def end_like(status: int) -> None:
    """End as `status` of waitpid() says that the program did."""
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != _signal.SIGKILL:
        _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # not reached but for signals that do not end a process


main(SOCKET, COLD)  # noqa: F821, the wrapper has set them
