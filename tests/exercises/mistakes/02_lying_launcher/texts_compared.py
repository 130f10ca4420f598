# wrong value: RANK=0 | same rank
# [answer 1]
if "TORCHELASTIC_RUN_ID" in environ:
    return []
pairs = MPIRUN if "OMPI_COMM_WORLD_RANK" in environ else SRUN
return [
    (a, b) for a, b in pairs if a in environ and b in environ and environ[a] != environ[b]
]
