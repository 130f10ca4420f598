# A Slurm cluster as it comes: shared home, `make tour` was run in it.
# shellcheck shell=bash disable=SC2034
#
# Settings, all optional: workshop site plain_slurm --set QUEUE=gpu --set GPUS_PER_NODE=4
#   QUEUE          partition
#   PROJECT        account
#   GPUS_PER_NODE  GPUs to ask for on each node; without it: none
#   CPUS_PER_NODE  cores to ask for on each node; without it: what the script says
#   INTERFACE      network interface between the nodes, such as ib0
#   ENVIRONMENT    folder of the Python environment; without it: .venv

SITE_SCHEDULER=slurm

# Options of sbatch, one per line. Given: NODES, TASKS_PER_NODE (1 if the task is
# torchrun, else the ranks of a node) and TIME.
site_options() {
  echo "--nodes=$NODES"
  echo "--time=$TIME"
  [ -z "${SITE_QUEUE:-}" ] || echo "--partition=$SITE_QUEUE"
  [ -z "${SITE_PROJECT:-}" ] || echo "--account=$SITE_PROJECT"
  [ -z "${SITE_GPUS_PER_NODE:-}" ] || echo "--gres=gpu:$SITE_GPUS_PER_NODE"
  [ "$TASKS_PER_NODE" = 1 ] || echo "--ntasks-per-node=$TASKS_PER_NODE"
  [ -z "${SITE_CPUS_PER_NODE:-}" ] ||
    echo "--cpus-per-task=$((SITE_CPUS_PER_NODE / TASKS_PER_NODE))"
}

# On each node, in the folder of the workshop, before anything is started.
site_environment() {
  activate_environment
}
