"""Becomes a task: started on a node, it asks the rehearsal what to run, and is it.

    unshare --mount python on_node.py SOCKET TASK

The answer comes with the task's stdin, stdout and stderr. The rehearsal learns from
the connection which process this is, and later ends whatever is in its session.
"""

import array
import json
import os
import socket
import subprocess
import sys


def receive(connection):
    """The answer, a line of JSON, and the file descriptors that came with it."""
    text, descriptors = b"", array.array("i")
    while not text.endswith(b"\n"):
        part, extra, _, _ = connection.recvmsg(2**16, 256)
        if not part:
            sys.exit(255)
        text += part
        for _, kind, data in extra:
            if kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data)
    return json.loads(text), descriptors


def main():
    os.setsid()  # a session of its own, by which it is found again
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        connection.sendall(json.dumps({"task": sys.argv[2]}).encode() + b"\n")
        order, descriptors = receive(connection)
    for source, target in order["mounts"]:
        subprocess.run(["mount", "--bind", source, target], check=True)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.umask(order["umask"])
    os.chdir(order["cwd"])
    try:
        os.execve(order["program"], order["argv"], order["env"])
    except OSError as error:
        print(f"{order['program']}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(254)


if __name__ == "__main__":
    main()
