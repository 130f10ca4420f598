#!/bin/bash
MODEL=${1:-base}
sbatch <<EOT
#!/bin/bash
#SBATCH --job-name=$MODEL
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=10:00:00
export OMP_NUM_THREADS=8
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_id=\$SLURM_JOB_ID --rdzv_backend=c10d \
    --rdzv_endpoint=\$MASTER_ADDR:29511 train.py --model $MODEL --resume auto
EOT
# expected: DT013 DT113 DT207 DT301
