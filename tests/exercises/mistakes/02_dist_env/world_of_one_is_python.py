# wrong value: launcher for | is 'python'
# [answer 1]
sizes = {
    "torchrun": ("TORCHELASTIC_RUN_ID", "WORLD_SIZE"),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "srun": ("SLURM_STEP_ID", "SLURM_NTASKS"),
}
for launcher, (marker, size) in sizes.items():
    if marker in environ and int(environ[size]) > 1:
        return launcher
return "python"
