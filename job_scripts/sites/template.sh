# Copy this file to NAME.sh beside it, and describe your site here in one sentence.
# shellcheck shell=bash disable=SC2034
#
# Which settings users may give, one per line, three spaces after the #. `workshop site
# NAME --set KEY=VALUE` accepts only these and makes each SITE_KEY; (needed): required.
#   PROJECT        (needed) what pays
#   GPUS_PER_NODE  GPUs on each node; without it: 4
#   INTERFACE      network interface between the nodes, if the host's name leads elsewhere
#   ENVIRONMENT    folder of the Python environment; without it: .venv

SITE_SCHEDULER=slurm # or pbs
: "${SITE_GPUS_PER_NODE:=4}"

# What `workshop submit` gives to sbatch (or qsub) before the script, one option per
# line. Given: NODES and TIME of the script, and TASKS_PER_NODE: 1 for scripts whose
# task is torchrun, else SITE_GPUS_PER_NODE.
site_options() {
  echo "--nodes=$NODES"
  echo "--time=$TIME"
  echo "--account=$SITE_PROJECT"
  echo "--partition=gpu"
  echo "--gpus-per-node=$SITE_GPUS_PER_NODE"
  echo "--ntasks-per-node=$TASKS_PER_NODE"
  echo "--cpus-per-task=$((32 / TASKS_PER_NODE))" # all cores of a node
}

# What each job runs on its nodes, in the folder of the workshop, before it starts
# anything. Afterwards `python` and `torchrun` must be from an environment with torch.
site_environment() {
  # module load python
  activate_environment
}
