#!/bin/sh
salloc -p debug -N 2 --ntasks-per-node=1 --gres=gpu:4 -c 32 -t 30 \
  sh -c '
    h=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1)
    torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-id dev \
      --rdzv-endpoint $h:29511 train.py
  '
# expected: DT103
