# wrong value: the numbers of the inner launcher
# [answer 1]
for table in (MPICH, OPEN_MPI):
    if table["rank"] in environ:
        return {what: int(environ[name]) for what, name in table.items()}
raise NotStarted("this process was not started by mpirun")
