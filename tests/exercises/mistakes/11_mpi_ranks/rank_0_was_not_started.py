# exception: NotStarted | Open MPI
# [answer 1]
for table in (OPEN_MPI, MPICH):
    if int(environ.get(table["rank"], 0)) > 0:
        return {what: int(environ[name]) for what, name in table.items()}
raise NotStarted("this process was not started by mpirun")
