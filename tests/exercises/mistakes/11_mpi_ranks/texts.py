# wrong value: the numbers of rank 5 under Open MPI | '
# [answer 1]
for table in (OPEN_MPI, MPICH):
    if table["rank"] in environ:
        return {what: environ[name] for what, name in table.items()}
raise NotStarted("this process was not started by mpirun")
