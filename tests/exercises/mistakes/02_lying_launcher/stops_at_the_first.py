# wrong value: All pairs that differ | has 1 items, expected 2
# [answer 1]
if "TORCHELASTIC_RUN_ID" in environ:
    return []
for a, b in MPIRUN if "OMPI_COMM_WORLD_RANK" in environ else SRUN:
    if a in environ and b in environ and int(environ[a]) != int(environ[b]):
        return [(a, b)]
return []
