# right: srun is recognized by the negation, numbers are read one by one
# [answer 1]
inner = [
    name
    for name, marker in (
        ("srun", "SLURM_STEP_ID"),
        ("mpirun", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("torchrun", "TORCHELASTIC_RUN_ID"),
    )
    if marker in environ
]
return inner[-1] if inner else "python"
