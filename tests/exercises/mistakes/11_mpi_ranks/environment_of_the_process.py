# exception: NotStarted | Open MPI
# [answer 1]
import os

for table in (OPEN_MPI, MPICH):
    if table["rank"] in os.environ:
        return {what: int(os.environ[name]) for what, name in table.items()}
raise NotStarted("this process was not started by mpirun")
