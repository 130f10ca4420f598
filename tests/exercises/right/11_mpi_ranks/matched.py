# right: the two tables as an or, the address by a count of its colons
# [answer 1]
def read(table):
    return {what: int(environ[name]) for what, name in table.items()}


try:
    return read(OPEN_MPI)
except KeyError:
    pass
try:
    return read(MPICH)
except KeyError:
    raise NotStarted("start this program with mpirun") from None
# [answer 2]
try:
    address, port = environ["MASTER_ADDR"], environ["MASTER_PORT"]
except KeyError as missing:
    raise NotStarted(f"{missing.args[0]} was not handed over to this process") from None
own = read_ranks(environ)
own.pop("local_rank")
place = f"[{address}]:{port}" if address.count(":") > 1 else f"{address}:{port}"
return dict(init_method="tcp://" + place, **own)
