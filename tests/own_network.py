"""A network of its own for each worker of pytest, so that no port is another's, too.

torchrun, and many a test, look for a free port and let it go; rank 0 listens on it a
second or ten later. Meanwhile a test beside it may take the port, and the run fails.
"""

import os
import socket
import sys
import tempfile
from pathlib import Path

from workshop.cluster.nodes.config import names_from_files
from workshop.system import namespaces

SWITCH = Path("/etc/nsswitch.conf")
OUTER = []  # the machine's own namespaces, open files


def enter():
    """Whether this process and its children now have a network with loopback only.

    That takes root's rights. It is also left alone where this machine's own name is an
    address of its network card, which the ranks of a run would look for.
    """
    if sys.platform != "linux" or not SWITCH.exists() or not own_name_is_loopback():
        return False
    outer = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("net", "mnt")]
    world = namespaces.NEW_NETWORK | namespaces.NEW_MOUNTS
    if namespaces.libc.unshare(world):
        return False
    OUTER.extend(outer)
    namespaces.start_loopback()
    flags = namespaces.RECURSIVE | namespaces.PRIVATE
    namespaces.mount("none", "/", flags=flags)  # what is mounted here stays here
    ask_no_dns_server()
    return True


def leave():
    """Be in the machine's network; a preexec_fn for what asks a package index."""
    for number in OUTER:
        namespaces.check(namespaces.libc.setns(number, 0), "setns")


def ask_no_dns_server():
    """Names come from /etc/hosts alone, in this mount namespace."""
    with tempfile.TemporaryDirectory() as folder:
        namespaces.mount("tmpfs", folder, "tmpfs")  # which nobody has to remove
        file = Path(folder, SWITCH.name)
        file.write_text(names_from_files(), encoding="utf-8")
        namespaces.bind(file, str(SWITCH))
        detached = namespaces.libc.umount2(folder.encode(), namespaces.DETACH)
        namespaces.check(detached, f"umount {folder}")


def own_name_is_loopback():
    try:
        return socket.gethostbyname(socket.gethostname()).startswith("127.")
    except OSError:
        return True
