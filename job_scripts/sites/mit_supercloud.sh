# MIT SuperCloud: Slurm, nodes with 2 V100 in the partition xeon-g6-volta.
# shellcheck shell=bash disable=SC2034
#
# Written from public job scripts of its users, never run there: tell us what is wrong.
# They say: GPUs are gpu:volta:N, two on a node of 40 cores (`-c 20` for each GPU);
# scripts begin with `source /etc/profile` and `module load anaconda/...`. LLsub
# SCRIPT submits what sbatch does; what `workshop submit --dry-run` shows is for sbatch.
#
# Settings, all optional: workshop site mit_supercloud --set MODULES=anaconda/2023a
#   QUEUE          partition; without it: xeon-g6-volta
#   GPUS_PER_NODE  without it: 2
#   CPUS_PER_NODE  without it: 40
#   MODULES        what to load, such as anaconda/2023a; without it: nothing
#   INTERFACE      network interface between the nodes; without it: what the host's name leads to
#   ENVIRONMENT    folder of the Python environment; without it: .venv

SITE_SCHEDULER=slurm
: "${SITE_GPUS_PER_NODE:=2}"

# Options of sbatch, one per line. Given: NODES, TASKS_PER_NODE (1 if the task is
# torchrun, else the ranks of a node) and TIME.
site_options() {
  echo "--nodes=$NODES"
  echo "--time=$TIME"
  echo "--partition=${SITE_QUEUE:-xeon-g6-volta}"
  echo "--gres=gpu:volta:$SITE_GPUS_PER_NODE"
  echo "--ntasks-per-node=$TASKS_PER_NODE"
  echo "--cpus-per-task=$((${SITE_CPUS_PER_NODE:-40} / TASKS_PER_NODE))"
}

# On each node, in the folder of the workshop, before anything is started.
site_environment() {
  local module
  source /etc/profile # brings `module`
  for module in ${SITE_MODULES:-}; do module load "$module"; done
  activate_environment
}
