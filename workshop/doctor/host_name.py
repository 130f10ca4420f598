"""Does this machine know its own name? Ranks that torchrun started depend on it.

torchrun tells its ranks the host name of the first node as MASTER_ADDR, also with
``--standalone``. Where that name can't be resolved, or where it belongs to another
machine, the ranks try to connect for minutes. gloo does without it, so that a test of
gloo doesn't notice.
"""

from __future__ import annotations

import os
import socket

from workshop.doctor.programs import probe

LIMIT = 5  # seconds; a look-up that takes longer delays every start of torchrun
# runs in a process of its own: a look-up can't be interrupted
LOOK_UP = """
import json, socket, sys
name = socket.getfqdn()  # what torchrun tells its ranks
try:
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
except (OSError, UnicodeError) as error:
    found = []
usable = False
for family, kind, protocol, _, address in found:
    with socket.socket(family, kind, protocol) as trial:
        try:
            trial.bind((address[0], 0))
            usable = True
        except OSError:
            pass
addresses = sorted({entry[4][0] for entry in found})
print(json.dumps({"name": name, "addresses": addresses, "usable": usable}))
"""


def problem() -> tuple[str, str]:
    """(what is wrong with this machine's own name, the cure); ("", "") if nothing."""
    if os.environ.get("PET_LOCAL_ADDR"):  # torchrun then tells its ranks this instead
        return "", ""
    answer = probe(LOOK_UP, LIMIT)
    name = socket.gethostname()
    if isinstance(answer, str):
        return f"{name} can't be looked up: {answer}", _cure(name)
    name, addresses = answer["name"], answer["addresses"]
    if not addresses:
        return f"{name} can't be resolved, and torchrun's ranks would wait", _cure(name)
    if not answer["usable"]:
        what = f"{name} is the address {addresses[0]}, which this machine doesn't have"
        return what, _cure(name)
    return "", ""


def _cure(name: str) -> str:
    return (
        f"add the line '127.0.1.1 {name}' to /etc/hosts, or have torchrun tell its "
        "ranks an address: export PET_LOCAL_ADDR=127.0.0.1"
    )
