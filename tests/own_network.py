"""A network of its own for each worker of pytest, so that no port is another's, too.

torchrun, and many a test, look for a free port and let it go; rank 0 listens on it a
second or ten later. Meanwhile a test beside it may take the port, and the run fails.
"""

import socket
import sys

from practice_cluster import namespaces


def enter():
    """Whether this process and its children now have a network with loopback only.

    That takes root's rights. It is also left alone where this machine's own name is an
    address of its network card, which the ranks of a run would look for.
    """
    if sys.platform != "linux" or not own_name_is_loopback():
        return False
    if namespaces.libc.unshare(namespaces.NEW_NETWORK):
        return False
    namespaces.start_loopback()
    return True


def own_name_is_loopback():
    try:
        return socket.gethostbyname(socket.gethostname()).startswith("127.")
    except OSError:
        return True
