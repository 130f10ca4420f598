#!/bin/bash
#SBATCH --nodes 1
#SBATCH --gres=gpu:2          # Request 2 GPU "generic resources".
#SBATCH --tasks-per-node=2    # Request 1 process per GPU.
#SBATCH --mem=8G
#SBATCH --time=0-03:00
#SBATCH --output=%N-%j.out

module load python # Using Default Python version
virtualenv --no-download $SLURM_TMPDIR/env
source $SLURM_TMPDIR/env/bin/activate
pip install torchvision pytorch-lightning --no-index

export TORCH_NCCL_BLOCKING_WAIT=1 # Lightning uses the NCCL backend
srun python pytorch-ddp-test-pl.py  --batch_size 256
