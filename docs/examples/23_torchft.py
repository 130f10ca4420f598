"""Three replicas under torchft: the last one dies in step 3; a spare is ready for it.

    python -m pip install torchft       # the workshop doesn't need it, nor install it
    python docs/examples/23_torchft.py 2> errors.txt

torchft's lighthouse decides who belongs to a step. Each replica has a Manager, which
asks for a quorum, averages over its members, and fetches a peer's state if it is new.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from importlib.metadata import version

import torch
import torch.distributed as dist
from torch import nn

try:
    from torchft import Manager, ProcessGroupGloo
    from torchft.coordination import LighthouseServer
except ImportError:
    sys.exit("23_torchft.py: error: no torchft: python -m pip install torchft")

STEPS, REPLICAS, PAUSE = 12, 3, 2.0  # seconds in each step
LAST = REPLICAS - 1


# [start manager]
def train(replica: int, seed: int) -> None:
    """Train with all that are alive; a spare has another seed, so other weights."""
    torch.manual_seed(seed)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

    def state() -> dict:
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    def load(found: dict) -> None:
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])

    lighthouse = input()  # its address; a spare gets it when it is needed
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=60)),
        load_state_dict=load,
        state_dict=state,
        min_replica_size=2,
        use_async_quorum=False,  # a new replica has the state before its first step
        init_sync=False,  # the first three begin with equal weights
        replica_id=str(replica),
        lighthouse_addr=lighthouse,
        store_addr="127.0.0.1",  # a store of this replica's own ranks
        store_port=store.port,
        rank=0,
        world_size=1,
        timeout=timedelta(seconds=60),
    )
    while manager.current_step() < STEPS:
        manager.start_quorum()
        step = manager.current_step()
        if (replica, step, seed) == (LAST, 3, 0):
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
        for parameter in model.parameters():
            manager.allreduce(parameter.grad).wait()  # the mean over the quorum
        done = manager.should_commit()
        if done:
            optimizer.step()
        if replica == 0:
            print(f"step {step}: {manager.num_participants()} replicas, {done=}")
        time.sleep(PAUSE)
    # [end manager]
    weights = ", ".join(f"{weight:.6f}" for weight in model.weight[0].tolist())
    sys.stdout.write(f"replica {replica} ends with {weights}\n")  # in one piece
    os._exit(0)


def start(replica: int, seed: int = 0) -> subprocess.Popen:
    """A replica that makes its model, and waits for the lighthouse's address."""
    command = [sys.executable, "-u", __file__, str(replica), str(seed)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, text=True)


def send(process: subprocess.Popen, address: str) -> None:
    assert process.stdin is not None
    process.stdin.write(address + "\n")
    process.stdin.close()


def main() -> None:
    print(f"torchft {version('torchft')}", flush=True)
    lighthouse = LighthouseServer(
        bind="[::]:0",
        min_replicas=2,
        join_timeout_ms=60_000,  # for replicas that beat, but have not arrived
        heartbeat_timeout_ms=5000,  # without a beat, a replica is dead
    )
    replicas = [start(replica) for replica in range(REPLICAS)]
    spare = start(LAST, seed=1)
    for replica in replicas:
        send(replica, lighthouse.address())
    status = replicas[LAST].wait()
    print(f"replica {LAST} has ended: {signal.Signals(-status).name}", flush=True)
    send(spare, lighthouse.address())
    for process in [*replicas[:LAST], spare]:
        process.wait()
    lighthouse.shutdown()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    if sys.argv[1:]:
        train(int(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
