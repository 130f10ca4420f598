# right: a walrus in place of a loop, the brackets by IPv6Address
# [answer 1]
if "OMPI_COMM_WORLD_RANK" not in environ and "PMI_RANK" not in environ:
    raise NotStarted("no mpirun or mpiexec has started this")
chosen = OPEN_MPI if OPEN_MPI["rank"] in environ else MPICH
return dict(zip(chosen, map(int, map(environ.__getitem__, chosen.values()))))
# [answer 2]
if not (host := environ.get("MASTER_ADDR")):
    raise NotStarted("MASTER_ADDR was not handed over")
if not (port := environ.get("MASTER_PORT")):
    raise NotStarted("MASTER_PORT was not handed over")
found = read_ranks(environ)
return {
    "world_size": found["world_size"],
    "rank": found["rank"],
    "init_method": f"tcp://[{host}]:{port}" if host.find(":") >= 0 else f"tcp://{host}:{port}",
}
