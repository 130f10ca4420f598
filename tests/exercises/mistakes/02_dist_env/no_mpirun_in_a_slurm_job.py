# wrong value: launcher for | expected 'mpirun'
# [answer 1]
if "TORCHELASTIC_RUN_ID" in environ:
    return "torchrun"
if any(name.startswith("SLURM_") for name in environ):
    return "srun" if "SLURM_STEP_ID" in environ else "python"
return "mpirun" if "OMPI_COMM_WORLD_RANK" in environ else "python"
