"""The long options of sbatch, srun and salloc, and what an abbreviation stands for.

The names are those of Slurm's src/common/slurm_opt.c, of older versions, and of pyxis.
"""

from __future__ import annotations

COMMON = """
account acctg-freq autocomplete bb bbf begin chdir cluster cluster-constraint clusters
comment constraint container container-id contiguous core-spec cores-per-socket cpu-freq
cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution exclude exclusive
extra extra-node-info gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task
gres gres-flags help hint hold job-name licenses mail-type mail-user mcs-label mem
mem-bind mem-per-cpu mem-per-gpu mincpus network nice no-kill nodefile nodelist nodes
ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket overcommit
oversubscribe partition prefer priority profile qos quiet reboot reservation
signal sockets-per-node spread-job switches tasks-per-node thread-spec threads-per-core
time time-min tmp tres-per-task usage use-min-nodes verbose version wckey
"""
OWN = {
    "sbatch": """
array batch error export export-file get-user-env gid ignore-pbs input
kill-on-invalid-dep no-requeue open-mode output parsable propagate requeue test-only
uid wait wait-all-nodes wrap
""",
    "srun": """
accel-bind bcast bcast-exclude compress cpu-bind disable-status epilog error exact
export export-all external-launcher het-group immediate input interactive jobid
kill-on-bad-exit label mpi msg-timeout multi-prog no-allocate open-mode output overlap
pack-group parsable preserve-env prolog propagate pty quit-on-interrupt relative
send-libs slurmd-debug task-epilog task-prolog test-only threads unbuffered wait
wait-for-children whole x11
""",
    "salloc": """
bell gid immediate kill-command no-bell no-shell uid wait wait-all-nodes x11
""",
}
PYXIS = """
container-entrypoint container-entrypoint-log container-env container-image
container-mount-home container-mounts container-name container-readonly
container-remap-root container-save container-unshare container-workdir
container-writable no-container-entrypoint no-container-mount-home
no-container-remap-root
"""
# Valid, but only in new or old versions: they make no abbreviation ambiguous.
RARE = """
async burst-buffer consolidate-segments context cpu_bind debugger-test environment
external ignore-signals mem-update mem_bind mincores minsockets minthreads
ntasks-per-tres oom-kill-step power resources resv-ports runtime segment share
spread-segments stepmgr treewidth tres-bind tres-per-job workdir
"""
EVERYWHERE = {*COMMON.split(), *PYXIS.split()}
TABLES = {tool: EVERYWHERE | set(own.split()) for tool, own in OWN.items()}
VALID = set(RARE.split()).union(*TABLES.values())
# Two names of one option: getopt takes an abbreviation of both.
SAME = {"cluster": "clusters"}


def meanings(name: str, tool: str) -> list[str]:
    """The options of a tool that begin with this name."""
    found = {option for option in TABLES[tool] if option.startswith(name)}
    return sorted({SAME.get(option, option) for option in found})


def full_name(name: str, tool: str) -> str:
    """``ntasks-per-n`` is ``ntasks-per-node``, as for getopt; else as it's written."""
    if name in VALID:
        return name
    found = meanings(name, tool)
    return found[0] if len(found) == 1 else name
