# wrong value: mpirun inside a Slurm job | OMPI_COMM_WORLD_RANK
# [answer 1]
if "TORCHELASTIC_RUN_ID" in environ:
    return []
return [
    (a, b)
    for a, b in SRUN + MPIRUN
    if a in environ and b in environ and int(environ[a]) != int(environ[b])
]
