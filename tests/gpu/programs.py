"""How each program of src/ is started on one GPU, and why some are not."""

from __future__ import annotations

SMALL = "--width=96 --heads=12 --blocks=4 --context=64 --batch-size=16"
GPT = f"2 {SMALL}"
BY_HAND = "src/13_pipeline_by_hand.py"
TORCHRUN = "torchrun --standalone --nproc-per-node=1"
# As srun starts the only task of a step, where a job script has named a port
STEP = (
    "env SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=1 SLURM_NTASKS=1 SLURM_PROCID=0 "
    "SLURM_LOCALID=0 SLURM_NODEID=0 MASTER_ADDR=127.0.0.1 MASTER_PORT={port}"
)

# One rank on the first GPU. What "&&" joins runs one after the other.
ONE_RANK = {
    "01_profile.py": "python src/instruments/01_profile.py 2",
    "01_single_device.py": "python src/01_single_device.py 2 1",
    "02_hello_ranks.py": f"{TORCHRUN} src/02_hello_ranks.py",
    "04_data_parallel.py": "python src/04_data_parallel.py 2 1",
    "04_data_parallel_by_hand.py": "python src/04_data_parallel_by_hand.py",
    "05_ddp_spawn.py": "python src/05_ddp_spawn.py 2 1",
    "05_timeline.py": "python src/instruments/05_timeline.py",
    "06_checkpoint.py": "python src/06_checkpoint.py 2 1",
    "06_compare_snapshots.py": (
        "python src/01_single_device.py 1 1 --snapshot a.pt && "
        "python src/instruments/06_compare_snapshots.py a.pt a.pt"
    ),
    "06_token_stream.py": (
        "python src/06_write_tokens.py tokens && "
        "python src/06_token_stream.py tokens --steps 2"
    ),
    "06_write_tokens.py": "python src/06_write_tokens.py tokens",
    "07_elastic.py": f"{TORCHRUN} src/07_elastic.py",
    "07_torchrun.py": f"{TORCHRUN} src/07_torchrun.py 2 1",
    "08_link_speed.py": f"{TORCHRUN} src/instruments/08_link_speed.py",
    "08_prove_cluster.py": f"{TORCHRUN} src/instruments/08_prove_cluster.py",
    "08_multinode_torchrun.py": f"{TORCHRUN} src/08_multinode_torchrun.py 2 1",
    "09_requeue.py": f"{STEP} python src/09_requeue.py 2 1",
    "09_srun.py": f"{STEP} python src/09_srun.py 2 1",
    "12_cost.py": "python src/instruments/12_cost.py src/12_two_processes.py 1",
    "12_model_parallel.py": "python src/12_model_parallel.py 2 --devices cuda:0 cuda:0",
    "12_timeline.py": "python src/instruments/12_timeline.py",
    "12_two_processes.py": "python src/12_two_processes.py 1",
    "13_cost.py": f"python src/instruments/13_cost.py {BY_HAND} {GPT}",
    "13_pipeline.py": f"python src/13_pipeline.py {GPT}",
    "13_pipeline_by_hand.py": f"python {BY_HAND} {GPT}",
    "13_timeline.py": f"python src/instruments/13_timeline.py {BY_HAND} {GPT}",
    "13_train_gpt.py": f"python src/13_train_gpt.py {GPT}",
    "14_cost.py": f"python src/instruments/14_cost.py src/14_tensor_by_hand.py {GPT}",
    "14_tensor_by_hand.py": f"python src/14_tensor_by_hand.py {GPT}",
    "14_tensor_parallel.py": f"python src/14_tensor_parallel.py {GPT}",
    "15_cost.py": f"python src/instruments/15_cost.py src/15_zero_by_hand.py {GPT}",
    "15_fsdp.py": f"python src/15_fsdp.py {GPT} --save-every 1",
    "15_timeline.py": "python src/instruments/15_timeline.py",
    "15_zero_by_hand.py": f"python src/15_zero_by_hand.py {GPT}",
    "16_checkpoint_to_file.py": (
        f"python src/16_fsdp_tensor_parallel.py {GPT} --checkpoints saved "
        "--save-every 2 && python src/instruments/16_checkpoint_to_file.py saved gpt.pt"
    ),
    "16_cost.py": (
        f"python src/instruments/16_cost.py src/16_fsdp_tensor_parallel.py {GPT}"
    ),
    "16_fsdp_tensor_parallel.py": (
        f"python src/16_fsdp_tensor_parallel.py {GPT} --checkpoints saved "
        "--save-every 1 --async-save"
    ),
    "16_pipeline_data.py": f"python src/16_pipeline_data.py {GPT}",
    "17_fsdp_accumulation.py": "python src/instruments/17_fsdp_accumulation.py 5",
    "17_profile.py": "python src/instruments/17_profile.py",
    "17_recipe.py": "python src/instruments/17_recipe.py",
    "17_speed.py": (
        "python src/instruments/17_speed.py 5 --with no-sync bf16 checkpoint"
    ),
    "17_straggler.py": "python src/instruments/17_straggler.py",
    "17_watch_run.py": (
        "python src/starter/train_ddp.py 1 --log-file run.jsonl && "
        "python src/instruments/17_watch_run.py run.jsonl --peak-tflops 989"
    ),
    "18_cost.py": "python src/instruments/18_cost.py --rounds 1",
    "18_roofline.py": "python src/instruments/18_roofline.py",
    "18_scaling.py": "python src/instruments/18_scaling.py --ranks 1 --batch-size 64",
    "19_gallery.py": "python src/instruments/19_gallery.py --list",
    "20_capstone.py": (
        f"python src/20_capstone.py {GPT} --checkpoints run --save-every 1 --async-save"
    ),
    "21_context_fsdp.py": f"python src/21_context_fsdp.py {GPT}",
    "21_context_parallel.py": f"python src/21_context_parallel.py {GPT}",
    "21_cost.py": f"python src/instruments/21_cost.py src/21_ring_attention.py {GPT}",
    "21_packed_documents.py": f"python src/21_packed_documents.py {GPT}",
    "21_ring_attention.py": f"python src/21_ring_attention.py {GPT}",
    "21_ulysses.py": f"python src/21_ulysses.py {GPT}",
    "22_cost.py": f"python src/instruments/22_cost.py src/22_expert_parallel.py {GPT}",
    "22_expert_parallel.py": f"python src/22_expert_parallel.py {GPT}",
    "22_mixture_of_experts.py": f"python src/22_mixture_of_experts.py {GPT}",
    "23_diloco.py": f"python src/23_diloco.py {GPT} --local-steps 2",
    "23_slow_link.py": f"python src/instruments/23_slow_link.py {GPT} --test-every 1",
}
# Those that one rank, or one GPU, can show nothing of
NOT_ALONE = {
    "03_collectives.py": "one rank has no partner; below, two share the GPU",
    "03_deadlocks.py": "one rank has no partner to wait for",
    "03_ring_all_reduce.py": "a ring of one rank sends nothing",
    "03_wire_bytes.py": "counts the bytes of gloo, for which it is the same on a GPU",
    "07_kill_a_rank.py": "kills one of several ranks, on whatever device",
    "07_one_rank_fails.py": "the others' errors are what it shows",
    "07_teardown.py": "forks ranks that use gloo on the CPU",
    "08_multinode_spawn.py": "several nodes, each started by hand",
    "18_why_slow.py": "compares a step with one that sends nothing, for several ranks",
    "19_flight_recorder.py": "runs a failure of several gloo ranks",
    "19_stacks.py": "runs a failure of several gloo ranks",
    "23_kills.py": "kills one of several gloo ranks",
    "23_lost_rank.py": "one rank has nobody to lose; it sends through gloo",
}
# Train the same model on the same text: one loss after one step
ONE_LOSS = (
    "13_train_gpt.py",
    "13_pipeline.py",
    "13_pipeline_by_hand.py",
    "14_tensor_by_hand.py",
    "14_tensor_parallel.py",
    "15_zero_by_hand.py",
    "15_fsdp.py",
    "16_fsdp_tensor_parallel.py",
    "16_pipeline_data.py",
    "20_capstone.py",
    "21_context_fsdp.py",
    "21_context_parallel.py",
    "21_ring_attention.py",
    "21_ulysses.py",
)
# Several ranks that share the GPU through gloo. Not 14_tensor_parallel.py: in its last
# line, full_tensor() of the scores ended in a segmentation fault there (torch 2.11).
SHARED_BY = "torchrun --standalone --nproc-per-node={ranks}"
SHARED = {
    "03_collectives.py": (2, "src/03_collectives.py all_reduce broadcast all_gather"),
    "07_torchrun.py": (2, "src/07_torchrun.py 2 1"),
    "14_tensor_by_hand.py": (2, f"src/14_tensor_by_hand.py {GPT}"),
    "15_zero_by_hand.py": (2, f"src/15_zero_by_hand.py {GPT}"),
    "15_fsdp.py": (2, f"src/15_fsdp.py {GPT}"),
    "16_fsdp_tensor_parallel.py": (4, f"src/16_fsdp_tensor_parallel.py {GPT}"),
    "17_speed.py": (2, "src/instruments/17_speed.py 3 --with no-sync one-bucket"),
    "21_ulysses.py": (2, f"src/21_ulysses.py {GPT}"),
    "22_expert_parallel.py": (2, f"src/22_expert_parallel.py {GPT}"),
    "23_diloco.py": (2, f"src/23_diloco.py {GPT} --local-steps 2"),
}
SHARED_REFUSE = {
    "13_pipeline.py": (2, f"src/13_pipeline.py {GPT}"),
    "16_pipeline_data.py": (2, f"src/16_pipeline_data.py {GPT}"),
    "21_ring_attention.py": (2, f"src/21_ring_attention.py {GPT}"),
    "21_packed_documents.py": (2, f"src/21_packed_documents.py {GPT}"),
}


def shared(name: str) -> str:
    """The command of a program whose ranks share a device."""
    ranks, rest = (SHARED | SHARED_REFUSE)[name]
    return f"{SHARED_BY.format(ranks=ranks)} {rest}"
