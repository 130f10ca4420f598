# wrong value: rank for TORCHELASTIC_RUN_ID=none | is 1, expected 1
# [answer 2]
launcher = find_launcher(environ)
names = {
    "torchrun": ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    "mpirun": tuple(f"OMPI_COMM_WORLD_{x}" for x in ("RANK", "LOCAL_RANK", "SIZE")),
    "srun": ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
}
if launcher == "python":
    return DistEnv(launcher, 0, 0, 1)
rank, local_rank, world_size = (int(environ[name][0]) for name in names[launcher])
return DistEnv(launcher, rank, local_rank, world_size)
