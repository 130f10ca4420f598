# wrong value: the numbers of rank | world_size
# [answer 1]
for table, size in ((OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE"), (MPICH, "MPI_LOCALNRANKS")):
    if table["rank"] in environ:
        found = {what: int(environ[name]) for what, name in table.items()}
        return {**found, "world_size": int(environ[size])}
raise NotStarted("this process was not started by mpirun")
