# wrong value: world_size for SLURM_PROCID | SLURM_NTASKS
# [answer 2]
launcher = find_launcher(environ)
if launcher == "python":
    return DistEnv(launcher, 0, 0, 1)
names = {
    "torchrun": ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    "mpirun": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_SIZE",
    ),
    "srun": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NNODES"),
}
rank, local_rank, world_size = (int(environ[name]) for name in names[launcher])
return DistEnv(launcher, rank, local_rank, world_size)
