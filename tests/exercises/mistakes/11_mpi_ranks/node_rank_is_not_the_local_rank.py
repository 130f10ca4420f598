# wrong value: the numbers of rank 5 under Open MPI | local_rank
# [answer 1]
names = OPEN_MPI if "OMPI_COMM_WORLD_RANK" in environ else MPICH
if names["rank"] not in environ:
    raise NotStarted("no mpirun")
found = {what: int(environ[name]) for what, name in names.items()}
if names is OPEN_MPI:
    found["local_rank"] = int(environ["OMPI_COMM_WORLD_NODE_RANK"])
return found
