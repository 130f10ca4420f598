# wrong value: Under torchrun | TORCHELASTIC_RUN_ID | expected 0
# [answer 1]
pairs = MPIRUN if "OMPI_COMM_WORLD_RANK" in environ else SRUN
return [
    (a, b)
    for a, b in pairs
    if a in environ and b in environ and int(environ[a]) != int(environ[b])
]
