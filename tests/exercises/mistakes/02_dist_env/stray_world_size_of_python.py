# wrong value: rank for RANK=77 | is 77, expected 0
# [answer 2]
launcher = find_launcher(environ)
names = {
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    "srun": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
}.get(launcher, ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
rank, local_rank, world_size = (
    int(environ.get(name, default)) for name, default in zip(names, (0, 0, 1))
)
return DistEnv(launcher, rank, local_rank, world_size)
