#!/usr/bin/env bash
set -euo pipefail
for lr in 1e-3 3e-4 1e-4; do
sbatch <<EOT
#!/bin/bash
#SBATCH --job-name="lr$lr"
#SBATCH --nodes=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=32
#SBATCH --time=4:00:00
export OMP_NUM_THREADS=8
srun --kill-on-bad-exit=1 torchrun --standalone --nproc_per_node=4 train.py --lr $lr --out runs/\$SLURM_JOB_ID --resume
EOT
done
