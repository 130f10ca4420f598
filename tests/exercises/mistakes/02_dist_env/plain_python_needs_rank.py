# exception: KeyError | RANK
# [answer 2]
launcher = find_launcher(environ)
prefix = {"mpirun": "OMPI_COMM_WORLD_"}.get(launcher, "")
if launcher == "srun":
    names = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS")
else:
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
rank, local_rank, world_size = (int(environ[prefix + name]) for name in names)
return DistEnv(launcher, rank, local_rank, world_size)
