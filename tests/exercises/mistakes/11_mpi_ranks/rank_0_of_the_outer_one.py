# wrong value: the numbers of the inner launcher
# [answer 1]
inner = int(environ.get("OMPI_COMM_WORLD_RANK", 0))
table = OPEN_MPI if inner or "PMI_RANK" not in environ else MPICH
if table["rank"] not in environ:
    raise NotStarted("this process was not started by mpirun")
return {what: int(environ[name]) for what, name in table.items()}
