"""Classic mistakes in a few lines each, and what the grader must say of them."""

from __future__ import annotations

from tests.grader.support import SUM
from workshop.grader.verdicts.verdict import Kind

# name -> (code, verdict, suspicion, words of the message)
CASES = {
    # exceptions
    "uses what all_reduce returns": (
        "return dist.all_reduce(t) / 2",
        Kind.EXCEPTION,
        "none_result",
        ["ranks 0, 1 and 2 raised TypeError", "line 9", "in place"],
    ),
    "exception on one rank, others wait": (
        "if rank == 1:\n    raise ValueError('no')\n" + SUM + "return t",
        Kind.EXCEPTION,
        "",
        ["rank 1 raised ValueError: no", "rank 0: waits in all_reduce", "line 11"],
    ),
    "exception of gloo, which names each rank and its time": (
        "dist.reduce_scatter_tensor(torch.empty(3), torch.ones(7))",
        Kind.EXCEPTION,
        "",
        ["ranks 0, 1 and 2 raised RuntimeError: Check failed"],
    ),
    "hole still open": (
        SUM + "raise NotImplementedError('TODO 2 of 3')",
        Kind.UNFINISHED,
        "",
        ["TODO 2 of 3 is still open, at line 10"],
    ),
    # hangs
    "only rank 0 enters": (
        "if rank == 0:\n    dist.all_reduce(t)\nreturn t",
        Kind.HANG,
        "not_everybody",
        ["rank 0: waits in all_reduce", "line 10", "only some ranks"],
    ),
    "all send first": (
        "dist.send(t, right)\ndist.recv(t, left)\nreturn t",
        Kind.HANG,
        "all_send",
        ["rank 2: waits in send(float64[3], to rank 0) at line 9", "none receives"],
    ),
    "all receive first": (
        "dist.recv(t, left)\ndist.send(t, right)\nreturn t",
        Kind.HANG,
        "all_receive",
        ["rank 2: waits in recv", "none has sent"],
    ),
    "waits for an irecv nobody sends": (
        "work = dist.irecv(t, left)\nwork.wait()\nreturn t",
        Kind.HANG,
        "all_receive",
        ["line 10: work.wait()"],
    ),
    "tags differ": (
        "if rank == 0:\n    dist.send(t, 1, tag=1)\nif rank == 1:\n"
        "    dist.recv(t, 0, tag=2)\nreturn t",
        Kind.HANG,
        "tags_differ",
        ["tag 1", "tag 2"],
    ),
    "a rank that does not exist": (
        "if rank == 2:\n    dist.send(t, 3)\nreturn t",
        Kind.EXCEPTION,
        "",
        ["rank 2 raised ValueError: send names rank 3, but the ranks are 0 to 2"],
    ),
    "one message is never taken": (
        "work = dist.isend(t.clone(), right)\ndist.recv(t, left)\nif rank == 1:\n"
        "    dist.send(t, 0)\ndist.all_reduce(t)\nreturn t",
        Kind.HANG,
        "partner_missing",
        ["rank 1: waits in send(float64[3], to rank 0) at line 12"],
    ),
    "tags differ on all ranks": (
        "work = dist.isend(t.clone(), right, tag=1)\ndist.recv(t, left, tag=2)\n"
        "return t",
        Kind.HANG,
        "tags_differ",
        ["never matches"],
    ),
    "every rank is the root": (
        "dist.broadcast(t, src=rank)\nreturn t",
        Kind.HANG,
        "own_root",
        ["root 0", "root 1", "root 2", "first difference"],
    ),
    "one more iteration on rank 0": (
        "for _ in range(3 if rank else 4):\n    dist.all_reduce(t)\nreturn t",
        Kind.HANG,
        "unequal_iterations",
        ["rank 0: waits in all_reduce", "different lengths"],
    ),
    "no iteration at all on rank 1": (
        "for _ in range(3 if rank != 1 else 0):\n    dist.all_reduce(t)\nreturn t",
        Kind.HANG,
        "unequal_iterations",
        ["rank 0: waits in all_reduce", "different lengths"],
    ),
    "an if in a loop": (
        "for _ in range(3):\n    if rank == 0:\n        dist.all_reduce(t)\nreturn t",
        Kind.HANG,
        "not_everybody",
        ["rank 0: waits in all_reduce", "`if` that is false on the others"],
    ),
    "a loop in an if": (
        "if rank == 0:\n    for _ in range(3):\n        dist.all_reduce(t)\nreturn t",
        Kind.HANG,
        "not_everybody",
        ["rank 0: waits in all_reduce", "`if` that is false on the others"],
    ),
    "group rank where the global rank is meant": (
        "g = dist.new_group([1, 2])\nif rank:\n"
        "    dist.broadcast(t, src=0, group=g)\nreturn t",
        Kind.EXCEPTION,
        "group_rank",
        ["ranks 1 and 2 raised ValueError", "a group rank was passed"],
    ),
    "exception swallowed on one rank": (
        "try:\n    if rank == 1:\n        raise OSError\n    dist.all_reduce(t)\n"
        "except OSError:\n    pass\nreturn t",
        Kind.HANG,
        "not_everybody",
        [
            "rank 0: waits in all_reduce",
            "rank 1: went past it with a wrong value (the sum)",
        ],
    ),
    "second wait on an isend": (
        "if rank == 0:\n    work = dist.isend(t, 1)\n    work.wait()\n    work.wait()\n"
        "if rank == 1:\n    dist.recv(t, 0)\nreturn t",
        Kind.HANG,
        "waited_twice",
        ["rank 0: waits at line 12: work.wait()", "second one"],
    ),
    "second wait while others wait for a message": (
        "work = dist.isend(t.clone(), right)\ndist.recv(t, left)\nwork.wait()\n"
        "if rank == 0:\n    work.wait()\nwork = dist.isend(t.clone(), left)\n"
        "dist.recv(t, right)\nwork.wait()\nreturn t",
        Kind.HANG,
        "waited_twice",
        ["rank 0: waits at line 13: work.wait()", "second one"],
    ),
    "send and receive in a circle": (
        "if rank % 2 == 0:\n    dist.send(t, right)\n    dist.recv(t, left)\nelse:\n"
        "    dist.recv(t.clone(), left)\n    dist.send(t, right)\ndist.send(t, right)\n"
        "dist.recv(t, left)\nreturn t",
        Kind.HANG,
        "circle",
        ["waits in send", "change their order on one rank"],
    ),
    "the wrong neighbor": (
        "work = dist.isend(t.clone(), right)\ndist.recv(t, right)\n"
        "work.wait()\nreturn t",
        Kind.HANG,
        "partner_missing",
        ["waits in recv(float64[3], from rank 1)", "wrong neighbor"],
    ),
    "what is waited for is not what was called last": (
        "works = [dist.irecv(t, left)]\nif rank != 1:\n"
        "    works.append(dist.isend(t.clone(), right))\n"
        "for work in works:\n    work.wait()\nreturn t",
        Kind.HANG,
        "partner_missing",
        ["rank 2: waits in recv(float64[3], from rank 1)"],
    ),
    "the others have left the function": (
        "if rank == 0:\n    dist.broadcast(t, src=0)\nreturn t",
        Kind.HANG,
        "not_everybody",
        ["only some ranks"],
    ),
    # messages
    "room for another dtype": (
        "if rank == 0:\n    dist.send(t, 1)\nif rank == 1:\n"
        "    dist.recv(torch.empty(3), 0)\nreturn t",
        Kind.CRASH,
        "message_differs",
        [
            "first difference: message no. 1 from rank 0 to rank 1",
            "rank 0: send(float64[3], to rank 1) at line 10",
            "rank 1: recv(float32[3], from rank 0) at line 12",
            "it last printed: op.preamble.length <= op.nbytes. 24 vs 12",
        ],
    ),
    "another dtype of one width": (
        "if rank == 0:\n    dist.send(t, 1)\nif rank == 1:\n"
        "    t = torch.empty(3, dtype=torch.int64)\n    dist.recv(t, 0)\nreturn t",
        Kind.WRONG_VALUE,
        "message_differs",
        ["rank 1: recv(int64[3], from rank 0)"],
    ),
    "a message of another partner": (
        "if rank == 0:\n    dist.send(t, 2)\nif rank == 1:\n    dist.send(t[:2], 2)\n"
        "if rank == 2:\n    dist.recv(torch.empty(2).double(), 0)\nreturn t",
        Kind.CRASH,
        "message_of_another",
        ["rank 2: recv(float64[2], from rank 0)", "the partner that you meant"],
    ),
    # works
    "a Work that is dropped": (
        "dist.isend(t.clone(), right)\nother = t.clone()\ndist.recv(other, left)\n"
        "dist.all_reduce(t)\nreturn t",
        Kind.WRONG_WAY,
        "not_waited",
        ["ranks 0, 1 and 2 never waited for the Work of isend at line 9", "`wait()`"],
    ),
    "a collective that nobody waits for": (
        "time.sleep(0.3 * (rank == 2))\ndist.all_reduce(t, async_op=True)\n"
        "return t.clone()",
        Kind.WRONG_WAY,
        "not_waited",
        ["never waited for the Work of all_reduce at line 10"],
    ),
    "an old name of a collective that nobody waits for": (
        "time.sleep(0.3 * (rank == 2))\nslots = torch.zeros(3 * world_size)\n"
        "dist.all_gather_into_tensor(slots, t.float(), async_op=True)\n"
        "return slots.double().view(world_size, 3).sum(0)",
        Kind.WRONG_WAY,
        "not_waited",
        ["never waited for the Work of all_gather_into_tensor at line 11"],
    ),
    "changed before it is waited for": (
        "work = dist.all_reduce(t, async_op=True)\nt /= world_size\nwork.wait()\n"
        "return t",
        Kind.WRONG_WAY,
        "not_waited",
        [
            "ranks 0, 1 and 2 changed the tensor of all_reduce at line 9 before",
            "line 10: t /= world_size",
        ],
    ),
    "its neighbor in memory is changed": (
        "pair = torch.stack([t, t])\nwork = dist.all_reduce(pair[0], async_op=True)\n"
        "pair[1] += 1\nwork.wait()\npair[0] += 0\nreturn pair[0]",
        Kind.RIGHT,
        "",
        [],
    ),
    "asks whether it is done": (
        "work = dist.all_reduce(t, async_op=True)\nwhile not work.is_completed():\n"
        "    time.sleep(0.01)\nother = t.clone()\n"
        "dist.all_reduce(other, async_op=True).get_future().wait()\nreturn t",
        Kind.RIGHT,
        "",
        [],
    ),
    "one slot for all": (
        "slots = [torch.empty_like(t)] * world_size\ndist.all_gather(slots, t)\n"
        "return sum(slots)",
        Kind.WRONG_VALUE,
        "all_slots_equal",
        ["`[t] * world_size`"],
    ),
    "past the wrapper": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "model = torch.nn.Linear(3, 1, bias=False).double()\nddp = DDP(model)\n"
        "model(t).backward()\nreturn model.weight.grad.flatten() * world_size",
        Kind.WRONG_VALUE,
        "past_ddp",
        ["went past the DDP wrapper", "read: docs/lessons/05_ddp_spawn/2_wrap.rst"],
    ),
    "another None than a collective's": (
        "t.grad.add_(1)\nreturn t",
        Kind.EXCEPTION,
        "no_gradient",
        ["'NoneType' object has no attribute"],
    ),
    # ledgers
    "the reduction differs": (
        "op = dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM\n"
        "dist.all_reduce(t, op=op)\nreturn t",
        Kind.LEDGER,
        "reduce_op_differs",
        ["rank 0: all_reduce(float64[3], SUM)", "ranks 1 and 2", "MAX"],
    ),
    "the order differs, silently": (
        "a, b = t.clone(), t * 2\nfor x in (a, b) if rank else (b, a):\n"
        "    dist.all_reduce(x)\nreturn a",
        Kind.WRONG_VALUE,
        "",
        ["the sum"],
    ),
    "the dtype differs": (
        "if rank == 1:\n    t = t.view(torch.int64)\ndist.all_reduce(t)\n"
        "return t.view(torch.float64)",
        Kind.LEDGER,
        "dtype_differs",
        ["int64[3]", "float64[3]"],
    ),
    "torch says that it has not implemented something": (
        "return torch.empty(3, device='meta').to('cpu')",
        Kind.EXCEPTION,
        "",
        ["NotImplementedError", "Cannot copy out of meta tensor"],
    ),
    # values
    "not averaged": (
        "dist.all_reduce(t)\nreturn t * world_size",
        Kind.WRONG_VALUE,
        "not_averaged",
        ["ranks 0, 1 and 2: is 3 times too big", "never divided"],
    ),
    "averaged twice": (
        "dist.all_reduce(t, op=dist.ReduceOp.AVG)\nreturn t",
        Kind.WRONG_VALUE,
        "averaged_twice",
        ["is 1/3 of the expected value"],
    ),
    "not communicated": (
        "return t",
        Kind.WRONG_VALUE,
        "not_communicated",
        ["own value"],
    ),
    "not waited for": (
        # rank 2 comes when the others have copied: what they have then is no chance
        "store = dist.distributed_c10d._get_default_store()\n"
        "if rank == 2:\n    store.wait(['0 copied', '1 copied'])\n"
        "work = dist.all_reduce(t, async_op=True)\n"
        "if rank == 2:\n    work.wait()\n    return t\n"
        "early = t.clone()\nstore.set(f'{rank} copied', '')\n"
        "work.wait()\nreturn early",
        Kind.WRONG_VALUE,
        "not_communicated",
        ["own value", "not waited for"],
    ),
    "reduce instead of all_reduce": (
        "dist.reduce(t, dst=0)\nreturn t",
        Kind.WRONG_VALUE,
        "only_the_root",
        ["rank 1: got", "rank 0: right", "give it to the root alone"],
    ),
    "other order": (
        SUM + "return t.flip(0)",
        Kind.WRONG_VALUE,
        "other_order",
        ["right numbers in another order"],
    ),
    "wrong shape": (
        SUM + "return t[:2]",
        Kind.WRONG_VALUE,
        "remainder",
        ["has shape [2], expected [3]"],
    ),
    "infinity": (
        SUM + "return t.abs() / 0",
        Kind.WRONG_VALUE,
        "infinite",
        ["3 infinite of 3 elements", "too large for its dtype"],
    ),
    "NaN": (SUM + "return t / 0 * 0", Kind.WRONG_VALUE, "nan", ["3 NaN of 3"]),
    "not a tensor": (
        SUM + "return 'three'",
        Kind.WRONG_VALUE,
        "",
        ["is a str, expected a tensor"],
    ),
    "nothing returned": (
        "dist.all_reduce(t)",
        Kind.WRONG_VALUE,
        "returns_none",
        ["is None", "return"],
    ),
    "nothing returned behind a barrier": (  # which nobody takes for a result
        "dist.barrier()",
        Kind.WRONG_VALUE,
        "",
        ["is None", "return"],
    ),
    # one rank off
    "one rank is off": (
        SUM + "return t + (rank == 1)",
        Kind.WRONG_VALUE,
        "",
        ["rank 1: got", "ranks 0 and 2: right"],
    ),
}
