#!/usr/bin/env bash
#
# one node of the GPU partition
#
#SBATCH --job-name=multigpu_torchrun
#SBATCH --nodes=1
#SBATCH --tasks-per-node=1
#SBATCH --gpus-per-task=8
#SBATCH --output="output_%x_%j.txt"
#SBATCH --time=00:30:00
#SBATCH --account=project_<your_project_id>

export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3

srun singularity exec pytorch_rocm.sif torchrun --standalone --nnodes=1 --nproc_per_node=gpu multigpu.py --total_epochs=10 --save_every=5
