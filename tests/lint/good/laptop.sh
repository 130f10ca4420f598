#!/usr/bin/env bash
# Trains on all GPUs of this machine.
set -euo pipefail
cd "$(dirname "$0")"
gpus=$(nvidia-smi -L | wc -l)
OMP_NUM_THREADS=4 torchrun --standalone --nproc-per-node="$gpus" train.py "$@"
