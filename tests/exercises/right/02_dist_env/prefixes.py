# right: prefixes and suffixes, sets of names
# [answer 1]
names = set(environ)
if names & {"TORCHELASTIC_RUN_ID"}:
    return "torchrun"
if any(name.startswith("OMPI_COMM_WORLD_") for name in names):
    return "mpirun"
return "srun" if "SLURM_STEP_ID" in names else "python"
# [answer 2]
launcher = find_launcher(environ)
if launcher == "python":
    return DistEnv(launcher=launcher, rank=0, local_rank=0, world_size=1)
if launcher == "srun":
    rank, local, size = "PROCID", "LOCALID", "NTASKS"
else:
    rank, local = "RANK", "LOCAL_RANK"
    size = "WORLD_SIZE" if launcher == "torchrun" else "SIZE"
prefix = {"torchrun": "", "mpirun": "OMPI_COMM_WORLD_", "srun": "SLURM_"}[launcher]
return DistEnv(
    launcher=launcher,
    rank=int(environ[f"{prefix}{rank}"]),
    local_rank=int(environ[f"{prefix}{local}"]),
    world_size=int(environ[f"{prefix}{size}"]),
)
