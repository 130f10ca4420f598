# wrong value: rank for | os.environ | read `environ`
# [answer 2]
import os
l = find_launcher(environ)
n = {"torchrun": ("RANK","LOCAL_RANK","WORLD_SIZE"), "mpirun": ("OMPI_COMM_WORLD_RANK","OMPI_COMM_WORLD_LOCAL_RANK","OMPI_COMM_WORLD_SIZE"), "srun": ("SLURM_PROCID","SLURM_LOCALID","SLURM_NTASKS")}.get(l)
return DistEnv(l, *(int(os.environ.get(x, environ[x])) for x in n)) if n else DistEnv(l, 0, 0, 1)
