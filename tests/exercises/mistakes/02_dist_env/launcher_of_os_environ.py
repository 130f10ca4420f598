# wrong value: find_launcher for an environment without a launcher | os.environ holds
# [answer 1]
import os

if "TORCHELASTIC_RUN_ID" in os.environ:
    return "torchrun"
if "OMPI_COMM_WORLD_RANK" in os.environ:
    return "mpirun"
return "srun" if "SLURM_STEP_ID" in os.environ else "python"
