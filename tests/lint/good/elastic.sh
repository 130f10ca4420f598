#!/bin/bash
set -euo pipefail
: "${HEAD:?name the first node}"
export OMP_NUM_THREADS=4
torchrun --nnodes=1:4 --nproc-per-node=8 --max-restarts=3 \
  --rdzv-id="${RUN_ID:?}" --rdzv-backend=c10d --rdzv-endpoint="$HEAD:29400" \
  train.py --snapshot /shared/run/snapshot.pt
