# right: one table, searched by its marker variable
# [answer 1]
for launcher, marker in (
    ("torchrun", "TORCHELASTIC_RUN_ID"),
    ("mpirun", "OMPI_COMM_WORLD_SIZE"),
    ("srun", "SLURM_STEP_ID"),
):
    if environ.get(marker) is not None:
        return launcher
return "python"
# [answer 2]
launcher = find_launcher(environ)
rank, local_rank, world_size = {
    "torchrun": ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    "mpirun": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_SIZE",
    ),
    "srun": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
    "python": ("", "", ""),
}[launcher]
return DistEnv(
    launcher,
    int(environ.get(rank, 0)),
    int(environ.get(local_rank, 0)),
    int(environ.get(world_size, 1)),
)
