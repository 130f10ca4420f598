#!/bin/bash
# What CUDA_VISIBLE_DEVICES holds in two tasks of one node, by how GPUs were asked for
set -euo pipefail
for asked in --gres=gpu:2 --gpus-per-node=2 --gpus-per-task=1 \
  "--gres=gpu:2 --gpu-bind=single:1"; do
  read -ra options <<< "$asked"
  # shellcheck disable=SC2016 # each task has its own
  seen=$(srun --nodes=1 --ntasks=2 "${options[@]}" \
    bash -c 'echo "task $SLURM_LOCALID: $CUDA_VISIBLE_DEVICES"' | sort | paste -sd ' ')
  printf '%-33s %s\n' "$asked" "$seen"
done
