# right: nested conditions, numbers through a helper
# [answer 1]
launcher = "python"
if "SLURM_STEP_ID" in environ:
    launcher = "srun"
if "OMPI_COMM_WORLD_RANK" in environ:
    launcher = "mpirun"
if "TORCHELASTIC_RUN_ID" in environ:
    launcher = "torchrun"
return launcher
# [answer 2]
def number(*names):
    return int(environ[dict(zip(("torchrun", "mpirun", "srun"), names))[launcher]])

launcher = find_launcher(environ)
if launcher == "python":
    return DistEnv("python", 0, 0, 1)
mpi = "OMPI_COMM_WORLD_"
return DistEnv(
    launcher,
    number("RANK", mpi + "RANK", "SLURM_PROCID"),
    number("LOCAL_RANK", mpi + "LOCAL_RANK", "SLURM_LOCALID"),
    number("WORLD_SIZE", mpi + "SIZE", "SLURM_NTASKS"),
)
