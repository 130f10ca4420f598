# wrong value: launcher for | is 'srun', expected 'mpirun'
# [answer 1]
if "TORCHELASTIC_RUN_ID" in environ:
    return "torchrun"
if "SLURM_STEP_ID" in environ:
    return "srun"
if "OMPI_COMM_WORLD_RANK" in environ:
    return "mpirun"
return "python"
