# wrong value: the numbers of the inner launcher
# [answer 1]
if OPEN_MPI["rank"] not in environ and MPICH["rank"] not in environ:
    raise NotStarted("this process was not started by mpirun")
return {
    "rank": int(environ.get(OPEN_MPI["rank"], environ.get(MPICH["rank"]))),
    "local_rank": int(environ.get(MPICH["local_rank"], environ.get(OPEN_MPI["local_rank"]))),
    "world_size": int(environ.get(OPEN_MPI["world_size"], environ.get(MPICH["world_size"]))),
}
