# wrong value: launcher for | OMPI_COMM_WORLD_RANK=0
# [answer 1]
if "TORCHELASTIC_RUN_ID" in environ:
    return "torchrun"
if int(environ.get("OMPI_COMM_WORLD_RANK", 0)):
    return "mpirun"
if "SLURM_STEP_ID" in environ:
    return "srun"
return "python"
