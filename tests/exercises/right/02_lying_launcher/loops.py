# right: loops instead of comprehensions, the address compared by its beginning
# [answer 1]
found = []
if "TORCHELASTIC_RUN_ID" not in environ:
    for pair in MPIRUN if "OMPI_COMM_WORLD_SIZE" in environ else SRUN:
        numbers = {int(environ[name]) for name in pair if name in environ}
        if len(numbers) == 2:
            found.append(pair)
return found
# [answer 2]
lies = contradictions(environ)
names = [name for pair in lies for name in pair]
if names:
    raise LyingLauncher(", ".join(f"{name}={environ[name]}" for name in names))
# [answer 3]
if int(environ["SLURM_NNODES"]) > 1:
    return not environ["MASTER_ADDR"].startswith(("localhost", "127."))
return True
