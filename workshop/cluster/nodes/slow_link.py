"""Carry Ethernet frames between two interfaces, each frame some time late.

A stand-in for ``tc netem``, which many kernels are built without. Frames keep their
virtio header, so that checksum and segmentation offload still work.
"""

import collections
import contextlib
import select
import socket
import time

from workshop.system.namespaces import wake_on_time

SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, ETH_P_ALL = 263, 15, 23, 3
LARGEST_FRAME = 1 << 17  # bytes; with segmentation offload a frame is up to 64 KiB
WAITING_ROOM = 16 << 20  # bytes that an interface may hold for this process


def open_port(interface: str) -> socket.socket:
    """All frames that come in at the interface, and a way to send some out."""
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WAITING_ROOM)
    port.bind((interface, ETH_P_ALL))
    port.setblocking(False)
    return port


def carry(seconds: float, one_end: str, other_end: str) -> None:
    """Carry frames both ways until killed."""
    wake_on_time()
    a, b = open_port(one_end), open_port(other_end)
    across = {a: b, b: a}
    queue = collections.deque()  # (due, port, frame), in order: one delay for all
    while True:
        wait = max(0.0, queue[0][0] - time.monotonic()) if queue else None
        for port in select.select([a, b], [], [], wait)[0]:
            due = time.monotonic() + seconds
            # OSError: nothing more to read, or the cable is out
            with contextlib.suppress(OSError):
                while True:
                    queue.append((due, across[port], port.recv(LARGEST_FRAME)))
        while queue and queue[0][0] <= time.monotonic():
            _, port, frame = queue.popleft()
            with contextlib.suppress(OSError):  # full or cut: a frame is lost
                port.send(frame)
