# wrong value: the numbers of the inner launcher
# [answer 1]
found = [t for t in (OPEN_MPI, MPICH) if t["world_size"] in environ]
if not found:
    raise NotStarted("no mpirun")
table = max(found, key=lambda t: int(environ[t["world_size"]]))
return {what: int(environ[name]) for what, name in table.items()}
