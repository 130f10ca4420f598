# exception: AttributeError | pop
# [answer 1]
for table in (OPEN_MPI, MPICH):
    if table["rank"] in environ:
        return {what: int(environ.pop(name)) for what, name in table.items()}
raise NotStarted("this process was not started by mpirun")
