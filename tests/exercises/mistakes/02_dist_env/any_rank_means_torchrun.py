# wrong value: launcher for | is 'torchrun', expected
# [answer 1]
if "RANK" in environ and "WORLD_SIZE" in environ:
    return "torchrun"
if "OMPI_COMM_WORLD_RANK" in environ:
    return "mpirun"
if "SLURM_STEP_ID" in environ:
    return "srun"
return "python"
