# What a node needs before it can train here. Every job script reads this file, in the
# folder of the workshop, on each node where the environment is not passed on:
#
#     source job_scripts/site_environment.sh
#
# What differs between sites is in one small file of job_scripts/sites. `workshop site`
# writes job_scripts/site.sh, which says which one; without it, it is the plain one of
# the scheduler that runs this job.
# shellcheck shell=bash

site_refuse() {
  echo "$(hostname): $*" >&2
  exit 2
}

if [ -e job_scripts/site.sh ]; then
  source job_scripts/site.sh # WORKSHOP_SITE, and SITE_... as set for this user
elif [ -z "${WORKSHOP_SITE:-}" ] && [ -n "${PBS_JOBID:-}" ]; then
  WORKSHOP_SITE=plain_pbs
fi
site_file=job_scripts/sites/${WORKSHOP_SITE:=plain_slurm}.sh
[ -e "$site_file" ] || site_refuse "there is no $site_file:" \
  "choose a site with \`workshop site\`"

# For site files: use the Python environment in the folder SITE_ENVIRONMENT. Where there
# is none, whatever the job was submitted with may have a torchrun of its own.
activate_environment() {
  local folder=${SITE_ENVIRONMENT:-.venv} # .venv is what `make tour` creates
  if [ -e "$folder/bin/activate" ]; then
    source "$folder/bin/activate"
  elif [ -n "${SITE_ENVIRONMENT:-}" ] || ! command -v torchrun > /dev/null; then
    site_refuse "there is no Python environment in $folder (from $PWD):" \
      "run \`make tour\` once, or name another:" \
      "workshop site $WORKSHOP_SITE --set ENVIRONMENT=FOLDER"
  fi
}

# [start threads]
# threads_of_rank RANKS CORES GPUS PROGRAM [ARGUMENT...]: how many threads each of the
# RANKS may have that share the CORES of a task or host. A data worker has one thread.
# Where there are GPUs and too few cores for ranks and workers, a line on stderr says so.
threads_of_rank() {
  local ranks=$1 cores=$2 gpus=$3 program=$4 workers=0 needed hosts ask threads
  shift 4
  if [[ " $* " =~ \ --(num[-_])?workers[=\ ]([0-9]+)\  ]]; then
    workers=${BASH_REMATCH[2]}
  elif grep -qs num_workers "$program"; then
    workers=2 # that of the starters; --workers among the arguments says otherwise
  fi
  needed=$((ranks * (workers + 1)))
  if [ "$gpus" -gt 0 ] && [ "$cores" -lt "$needed" ] && [ "${SLURM_NODEID:-0}" = 0 ]; then
    if [ -n "${PBS_NODEFILE:-}" ]; then
      hosts=$(sort -u "$PBS_NODEFILE" | wc -l)
      ask="#PBS -l select=$hosts:ncpus=$needed:ngpus=$gpus:mem=$((4 * needed))gb"
      [ "${SITE_REPLACES_RESOURCES:-no}" = no ] || ask="#PBS -l ncpus=$((hosts * needed))"
    elif [ -n "${SLURM_STEP_ID:-}" ]; then
      ask="srun --cpus-per-task=$needed"
    else
      ask="#SBATCH --cpus-per-task=$needed"
    fi
    echo "Warning: $cores core(s) for $ranks rank(s) with $workers data worker(s) each." \
      "With fewer than $needed, the GPUs wait. Ask for them: $ask" >&2
  fi
  threads=$((cores / ranks - workers))
  echo $((threads > 1 ? threads : 1))
}
# [end threads]

source "$site_file"
case $SITE_SCHEDULER in
  slurm) site_other_job=${PBS_JOBID:-} ;;
  *) site_other_job=${SLURM_JOB_ID:-} ;;
esac
[ -z "$site_other_job" ] || site_refuse "the site $WORKSHOP_SITE has another" \
  "scheduler than this job: choose one with \`workshop site\`"
# `module` and `activate` are not written for set -e and set -u
site_shell_options=$-
set +eu
site_environment
case $site_shell_options in *e*) set -e ;; esac
case $site_shell_options in *u*) set -u ;; esac
command -v torchrun > /dev/null ||
  site_refuse "there is no torchrun after site_environment of $site_file"

# By which network the ranks talk; without it, by the one that the host's name leads to.
if [ -n "${SITE_INTERFACE:-}" ]; then
  export GLOO_SOCKET_IFNAME=$SITE_INTERFACE NCCL_SOCKET_IFNAME=$SITE_INTERFACE
fi
# For the failures that only GPUs have: NCCL says what it refuses, and PyTorch keeps the
# last collectives of each rank, which it writes to a file when one has timed out.
if [ -e /dev/nvidiactl ] || [ -e /dev/kfd ]; then
  export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
  export TORCH_FR_BUFFER_SIZE=${TORCH_FR_BUFFER_SIZE:-2000}
  site_record=$PWD/recorder_${SLURM_JOB_ID:-${PBS_JOBID:-}}_ # the rank follows
  export TORCH_FR_DUMP_TEMP_FILE=${TORCH_FR_DUMP_TEMP_FILE:-$site_record}
  LOGS=${LOGS-logs/job${SLURM_JOB_ID:-${PBS_JOBID:-}}}
fi
# Each torchrun also writes one log per rank, in LOGS/HOST. The job's own output still has
# all lines, and before each the rank that printed it. LOGS= sbatch ...: without them.
if [ -n "${LOGS:-}" ]; then
  export SITE_LOGS=$LOGS PET_TEE=3 # PET_: options of torchrun, --tee and --log-dir
  PET_LOG_DIR=$SITE_LOGS/$(hostname)
  # shellcheck disable=SC2016 # torchrun knows the rank
  TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE='[rank${rank}]: '
  export PET_LOG_DIR TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE
fi
# What was set here reaches the tasks of srun even if sbatch was told --export=NONE.
export SLURM_EXPORT_ENV=ALL
