# wrong value: launcher for SLURM_PROCID=0 | is 'srun', expected 'python' | alone
# [answer 1]
if "TORCHELASTIC_RUN_ID" in environ:
    return "torchrun"
if "OMPI_COMM_WORLD_RANK" in environ:
    return "mpirun"
if "SLURM_PROCID" in environ:
    return "srun"
return "python"
