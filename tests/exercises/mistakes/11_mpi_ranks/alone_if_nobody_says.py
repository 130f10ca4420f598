# wrong value: a process that no mpirun has started | must raise NotStarted
# [answer 1]
for table in (OPEN_MPI, MPICH):
    if table["rank"] in environ:
        return {what: int(environ[name]) for what, name in table.items()}
return {"rank": 0, "local_rank": 0, "world_size": 1}
