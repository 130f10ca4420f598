# wrong value: launcher for | is 'mpirun', expected 'torchrun'
# [answer 1]
if "OMPI_COMM_WORLD_RANK" in environ:
    return "mpirun"
if "TORCHELASTIC_RUN_ID" in environ:
    return "torchrun"
if "SLURM_STEP_ID" in environ:
    return "srun"
return "python"
