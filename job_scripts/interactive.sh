#!/bin/bash
# For an interactive allocation: srun starts this on each node, it starts torchrun with
# one rank for each GPU of the job there, else for each CPU of the task.
#
#     srun --nodes=2 --gres=gpu:2 --cpus-per-task=16 --mem-per-cpu=4G ./job_scripts/interactive.sh
#     salloc --nodes=2 --ntasks-per-node=1 --cpus-per-task=2 --time=00:30:00
#     srun ./job_scripts/interactive.sh src/08_multinode_torchrun.py 10 5
set -euo pipefail
site=job_scripts/site_environment.sh # srun starts us in the folder it is run in
[ -e "$site" ] || { echo "$PWD has no $site: run srun in the workshop's folder" >&2; exit 2; }
source "$site"

if [ "${SLURM_NTASKS:-0}" != "${SLURM_NNODES:-}" ]; then
  echo "this starts one torchrun per task and needs one task per node: srun --nodes=N --ntasks=N --ntasks-per-node=1 $0" >&2
  exit 2
fi
# [start meeting point]
# The same on all nodes, another one for each srun inside a salloc.
read -r head_node < <(scontrol show hostnames "$SLURM_STEP_NODELIST")
port=$((20000 + (SLURM_JOB_ID * 11 + SLURM_STEP_ID * 101) % 10000))
# [end meeting point]
cpus=${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}}
ranks=${RANKS_PER_NODE:-${SLURM_GPUS_ON_NODE:-$cpus}}
if [ $# = 0 ]; then
  mkdir -p snapshots
  set -- src/08_multinode_torchrun.py "${EPOCHS:-10}" "${SAVE_EVERY:-5}" \
    --snapshot "snapshots/job$SLURM_JOB_ID.$SLURM_STEP_ID.pt"
fi
# site_environment.sh: with GPUs, it warns if ranks and data workers lack cores
threads=$(threads_of_rank "$ranks" "$cpus" "${SLURM_GPUS_ON_NODE:-0}" "$@")
export OMP_NUM_THREADS=$threads

# exec: what Slurm signals is torchrun itself
exec torchrun --nnodes="$SLURM_NNODES" --nproc-per-node="$ranks" \
  --rdzv-backend=c10d --rdzv-endpoint="$head_node:$port" \
  --rdzv-id="$SLURM_JOB_ID.$SLURM_STEP_ID" "$@"
