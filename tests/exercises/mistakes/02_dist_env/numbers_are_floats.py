# wrong value: must be int
# [answer 2]
launcher = find_launcher(environ)
names = {
    "torchrun": ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    "srun": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
}
if launcher not in names:
    return DistEnv(launcher, 0, 0, 1)
return DistEnv(launcher, *(float(environ[name]) for name in names[launcher]))
