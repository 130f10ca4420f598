# wrong value: rank for RANK=77 | is 77, expected
# [answer 2]
launcher = find_launcher(environ)
if launcher == "python":
    return DistEnv(launcher, 0, 0, 1)
places = {
    "torchrun": ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    "srun": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
}[launcher]
general = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
numbers = [int(environ.get(g) or environ[p]) for g, p in zip(general, places)]
return DistEnv(launcher, *numbers)
