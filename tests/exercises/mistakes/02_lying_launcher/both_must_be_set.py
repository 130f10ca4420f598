# exception: KeyError | only one of a pair
# [answer 1]
if "TORCHELASTIC_RUN_ID" in environ:
    return []
pairs = MPIRUN if "OMPI_COMM_WORLD_RANK" in environ else SRUN
return [(a, b) for a, b in pairs if int(environ[a]) != int(environ[b])]
