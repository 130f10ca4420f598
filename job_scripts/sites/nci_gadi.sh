# NCI's Gadi: PBS with resources of the whole job, GPUs in the queue gpuvolta.
# shellcheck shell=bash disable=SC2034
#
# Written from NCI's public pages (opus.nci.org.au), never run there: tell us what is
# wrong. They say: ncpus must be 12 x ngpus in gpuvolta, whose nodes have 4 V100,
# 48 cores and 382 GiB; resources are counted for the job, not for a node; storage
# must be named; compute nodes reach no network, so run `make env` on a login node.
#
# Settings: workshop site nci_gadi --set PROJECT=ab12 --set STORAGE=gdata/ab12
#   PROJECT          (needed) project that pays, such as ab12
#   STORAGE          file systems that the job sees, such as gdata/ab12+scratch/ab12; without it: scratch of PROJECT
#   QUEUE            without it: gpuvolta
#   GPUS_PER_NODE    without it: 4
#   CPUS_PER_NODE    without it: 48
#   MEMORY_PER_NODE  in GB; without it: 380
#   MODULES          what to load, such as python3/3.11.7; without it: nothing
#   INTERFACE        network interface between the nodes; without it: what the host's name leads to
#   ENVIRONMENT      folder of the Python environment; without it: .venv

SITE_SCHEDULER=pbs
: "${SITE_GPUS_PER_NODE:=4}"
# select= and place= in a script contradict ncpus= for the job: the directives of the
# script give way to these options (`workshop submit` submits such a copy)
SITE_REPLACES_RESOURCES=yes

# Options of qsub, one per line. Given: NODES and TIME.
site_options() {
  echo "-P$SITE_PROJECT"
  echo "-q${SITE_QUEUE:-gpuvolta}"
  echo "-lncpus=$((${SITE_CPUS_PER_NODE:-48} * NODES))"
  echo "-lngpus=$((SITE_GPUS_PER_NODE * NODES))"
  echo "-lmem=$((${SITE_MEMORY_PER_NODE:-380} * NODES))GB"
  echo "-lwalltime=$TIME"
  echo "-lstorage=${SITE_STORAGE:-scratch/$SITE_PROJECT}"
}

# On each node, in the folder of the workshop, before anything is started.
site_environment() {
  local module
  for module in ${SITE_MODULES:-}; do module load "$module"; done
  activate_environment
}
