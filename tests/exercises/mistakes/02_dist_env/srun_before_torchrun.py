# wrong value: launcher for | is 'srun', expected 'torchrun' | srun started one torchrun
# [answer 1]
if "SLURM_STEP_ID" in environ:
    return "srun"
if "OMPI_COMM_WORLD_RANK" in environ:
    return "mpirun"
if "TORCHELASTIC_RUN_ID" in environ:
    return "torchrun"
return "python"
