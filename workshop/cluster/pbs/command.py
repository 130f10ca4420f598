"""One command of the rehearsal, as users start it: qsub, qstat, pbsdsh, ssh...

    python command.py SOCKET NAME [ARGUMENTS...]

It tells the rehearsal what was typed, where and in which environment, and prints the
answer. A SIGTERM is passed on, and ends the command at once: what that does to the
tasks of a job is the rehearsal's affair.
"""

import array
import json
import os
import signal
import socket
import sys


def main():
    path, name, *argv = sys.argv[1:]
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        sys.exit(f"{name}: the rehearsal of PBS is over (no answer at {path})")

    def pass_on(number, _frame):
        connection.sendall(b'{"signal": %d}\n' % number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, pass_on)
    request = {
        "command": name,
        "argv": argv,
        "cwd": os.getcwd(),
        "env": dict(os.environ),
        "host": socket.gethostname(),
    }
    message = json.dumps(request).encode() + b"\n"
    # qsub reads a script there, and what ssh starts reads and writes there
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    sent = connection.sendmsg([message], rights)
    if sent < len(message):  # else the answer may be there, and the connection over
        connection.sendall(message[sent:])
    with connection.makefile() as answers:
        for line in answers:
            answer = json.loads(line)
            print(answer.get("out", ""), end="", flush=True)
            print(answer.get("err", ""), end="", file=sys.stderr, flush=True)
            if "exec" in answer:
                os.execvp(answer["exec"][0], answer["exec"])
            if "status" in answer:
                sys.exit(answer["status"])
    sys.exit(f"{name}: the rehearsal of PBS has ended")


if __name__ == "__main__":
    main()
