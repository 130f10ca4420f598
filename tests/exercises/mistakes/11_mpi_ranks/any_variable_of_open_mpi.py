# exception: KeyError: 'OMPI_COMM_WORLD_RANK'
# [answer 1]
if any(name.startswith("OMPI_") for name in environ):
    table = OPEN_MPI
elif any(name.startswith("PMI_") for name in environ):
    table = MPICH
else:
    raise NotStarted("no mpirun")
return {what: int(environ[name]) for what, name in table.items()}
