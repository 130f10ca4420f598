# wrong value: local_rank for TORCHELASTIC_RUN_ID | RANK=
# [answer 2]
launcher = find_launcher(environ)
if launcher == "python":
    return DistEnv(launcher, 0, 0, 1)
names = {
    "torchrun": ("RANK", "RANK", "WORLD_SIZE"),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "srun": ("SLURM_PROCID", "SLURM_PROCID", "SLURM_NTASKS"),
}
rank, local_rank, world_size = (int(environ[name]) for name in names[launcher])
return DistEnv(launcher, rank, local_rank, world_size)
