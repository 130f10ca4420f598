# wrong value: TORCHELASTIC_RUN_ID=4711 | expected 'torchrun'
# [answer 1]
if environ.get("TORCHELASTIC_RUN_ID") == "none":
    return "torchrun"
if "OMPI_COMM_WORLD_RANK" in environ:
    return "mpirun"
if "SLURM_STEP_ID" in environ:
    return "srun"
return "python"
