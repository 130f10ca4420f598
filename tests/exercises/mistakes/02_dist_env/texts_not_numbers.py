# wrong value: rank for | is '1
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
    "srun": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
}
return DistEnv(launcher, *(environ[name] for name in names[launcher]))
