"""Runs a few lines of code in forked ranks, also where they hang or abort.

    ranks(3, "dist.all_reduce(t)")    # what became of each rank
    values(3, "result = rank")        # what each has left in `result`

The code has ``rank``, ``world_size``, ``torch``, ``dist``, and ``looked``, the path of
a file by which ranks can tell each other something.
"""

import json
import subprocess
import sys
import textwrap

from tests.launched import environment

HANGS = ["hangs"]

# One process imports torch and forks the ranks, which costs far less than W imports.
# argv: number of ranks, seconds to wait. stdin: the code of each rank. stdout: JSON,
# for each rank ["value", v], ["raised", type, text], ["signal", n] or ["hangs"].
DRIVER = """
import json, os, signal, sys, tempfile, time
from datetime import timedelta
import torch, torch.distributed as dist

world_size, patience = int(sys.argv[1]), float(sys.argv[2])
code = sys.stdin.read()
folder = tempfile.mkdtemp()


def one_rank(rank):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meet",
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=60),
    )
    names = {"rank": rank, "world_size": world_size, "torch": torch, "dist": dist}
    names |= {"looked": f"{folder}/looked"}
    dist.barrier()
    open(f"{folder}/{rank}.begun", "w").close()
    try:
        exec(code, names)
        said = ["value", names.get("result")]
    except Exception as error:
        said = ["raised", type(error).__name__, str(error)]
    with open(f"{folder}/{rank}.part", "w") as file:
        json.dump(said, file)
    os.rename(f"{folder}/{rank}.part", f"{folder}/{rank}.json")
    time.sleep(600)  # nobody leaves before all have said what they saw


children = {}
for rank in range(world_size):
    pid = os.fork()
    if pid == 0:
        try:
            one_rank(rank)
        finally:
            os._exit(1)
    children[rank] = pid

said = {}
end = time.monotonic() + 40  # to start
begun = False
while len(said) < world_size and time.monotonic() < end:
    if not begun and all(os.path.exists(f"{folder}/{r}.begun") for r in children):
        begun, end = True, time.monotonic() + patience
    for rank, pid in children.items():
        if rank in said:
            continue
        if os.path.exists(f"{folder}/{rank}.json"):
            said[rank] = json.load(open(f"{folder}/{rank}.json"))
        elif (status := os.waitpid(pid, os.WNOHANG))[0]:
            said[rank] = ["signal", os.waitstatus_to_exitcode(status[1])]
    time.sleep(0.02)
assert begun, "the ranks did not meet"
for pid in children.values():
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
print(json.dumps([said.get(rank, ["hangs"]) for rank in range(world_size)]))
"""


def ranks(world_size, code, patience=2.0, **variables):
    """What became of the code on each rank."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(world_size), str(patience)],
        input=textwrap.dedent(code),
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def values(world_size, code, **variables):
    found = ranks(world_size, code, patience=20, **variables)
    assert all(said[0] == "value" for said in found), found
    return [said[1] for said in found]
