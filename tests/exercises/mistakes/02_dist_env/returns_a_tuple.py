# wrong value: get_dist_env returned a tuple, expected a DistEnv
# [answer 2]
names = {
    "torchrun": ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    "mpirun": tuple(f"OMPI_COMM_WORLD_{n}" for n in ("RANK", "LOCAL_RANK", "SIZE")),
    "srun": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
}
launcher = find_launcher(environ)
if launcher == "python":
    return launcher, 0, 0, 1
return launcher, *(int(environ[name]) for name in names[launcher])
