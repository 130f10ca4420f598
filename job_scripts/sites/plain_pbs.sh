# An OpenPBS cluster as it comes: shared home, `make tour` was run in it.
# shellcheck shell=bash disable=SC2034
#
# Settings, all optional: workshop site plain_pbs --set QUEUE=gpu --set GPUS_PER_NODE=4
#   QUEUE            queue
#   PROJECT          project (qsub -P)
#   GPUS_PER_NODE    GPUs to ask for on each node; without it: none
#   CPUS_PER_NODE    cores to ask for on each node; without it: 2
#   MEMORY_PER_NODE  such as 16gb; without it: 4gb
#   INTERFACE        network interface between the nodes, such as ib0
#   ENVIRONMENT      folder of the Python environment; without it: .venv

SITE_SCHEDULER=pbs

# Options of qsub, one per line. Given: NODES and TIME.
site_options() {
  local chunk=ncpus=${SITE_CPUS_PER_NODE:-2}:mem=${SITE_MEMORY_PER_NODE:-4gb}
  [ -z "${SITE_GPUS_PER_NODE:-}" ] || chunk=$chunk:ngpus=$SITE_GPUS_PER_NODE
  echo "-lselect=$NODES:$chunk"
  echo "-lplace=scatter"
  echo "-lwalltime=$TIME"
  [ -z "${SITE_QUEUE:-}" ] || echo "-q$SITE_QUEUE"
  [ -z "${SITE_PROJECT:-}" ] || echo "-P$SITE_PROJECT"
}

# On each node, in the folder of the workshop, before anything is started.
site_environment() {
  activate_environment
}
