#!/bin/bash
#SBATCH --job-name=forge
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4      # must match gpus-per-node
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=24:00:00
#SBATCH --signal=B:SIGTERM@120   # 120 s before the limit
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
CONFIG=${1:?usage: sbatch $0 CONFIG}
shift
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_PORT=$((15000 + SLURM_JOB_ID % 20000))
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 2))

forward() {
  echo "SIGTERM: passing it on to the step"
  scancel --signal=TERM "${SLURM_JOB_ID}.0" || true
}
trap forward TERM

srun --kill-on-bad-exit=1 --cpus-per-task="$SLURM_CPUS_PER_TASK" \
  uv run python scripts/train.py "$CONFIG" "$@" &
wait $!
