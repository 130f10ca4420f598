# right: looks for the table by next(), and lets the ipaddress module see what IPv6 is
# [answer 1]
table = next((t for t in (OPEN_MPI, MPICH) if t["world_size"] in environ), None)
if table is None:
    raise NotStarted("neither Open MPI's mpirun nor Hydra's has started this process")
return {what: int(environ[name]) for what, name in table.items()}
# [answer 2]
import ipaddress

if missing := {"MASTER_ADDR", "MASTER_PORT"} - set(environ):
    raise NotStarted("not handed over by mpirun: " + ", ".join(sorted(missing)))
address = environ["MASTER_ADDR"]
try:
    brackets = ipaddress.ip_address(address).version == 6
except ValueError:
    brackets = False
address = f"[{address}]" if brackets else address
found = read_ranks(environ)
del found["local_rank"]
return {"init_method": f"tcp://{address}:{int(environ['MASTER_PORT'])}", **found}
