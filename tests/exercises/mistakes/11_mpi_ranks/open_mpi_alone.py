# exception: KeyError | OMPI_COMM_WORLD_RANK
# [answer 1]
return {what: int(environ[name]) for what, name in OPEN_MPI.items()}
