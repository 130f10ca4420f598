# wrong value: the numbers of rank 0 under Open MPI | numbers
# [answer 1]
for table in (OPEN_MPI, MPICH):
    found = {what: int(environ.get(name, 0)) for what, name in table.items()}
    if found["rank"]:
        return found
if "OMPI_COMM_WORLD_RANK" in environ or "PMI_RANK" in environ:
    return {"rank": 0, "local_rank": 0, "world_size": 1}
raise NotStarted("this process was not started by mpirun")
