"""Examples of mistakes that are recognized: (table, key, what shows it)."""

from workshop.grader.verdicts.classics.scripts import UNSEEN

EXAMPLES_OF_GRAPHS = [
    (
        "exceptions",
        "graph_twice",
        ("RuntimeError", "Trying to backward through the graph a second time (or", ""),
    ),
    (
        "exceptions",
        "no_graph",
        ("RuntimeError", "element 0 of tensors does not require grad and does not", ""),
    ),
    (
        "exceptions",
        "no_group",
        ("ValueError", "Default process group has not been initialized, please", ""),
    ),
]

EXAMPLES_OF_SCRIPTS = [
    ("scripts", "directive_below", ("#!/bin/bash\nset -e\n#SBATCH -N2\n", "1 CPU")),
    ("scripts", "directive_space", ("#!/bin/bash\n# SBATCH --nodes=2\nls\n", "1 CPU")),
    (
        "scripts",
        "directive_misspelled",
        ("#!/bin/bash\n#sbatch --cpus-per-task=4\nls\n", "the job has 1 CPU"),
    ),
    (
        "scripts",
        "directive_blanks",
        ("#!/bin/bash\n#SBATCH --nodes = 2\nls\n", "ended as REFUSED (1)"),
    ),
    (
        "scripts",
        "broken_line",
        ("srun x \\ # one\n  --a=1\n", "job.sh: line 2: --a=1: command not found"),
    ),
    (
        "scripts",
        "bare_task",
        (
            "pbs_tmrsh $host /bin/bash -c 'cd $PWD && torchrun x'\n",
            "no host started torchrun; bash: line 1: torchrun: command not found",
        ),
    ),
    (
        "scripts",
        "not_exported",
        (
            "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n"
            "head=$(hostname)\nsrun -K bash -c 'torchrun --nnodes=2 --node-rank="
            "$SLURM_NODEID --master-addr=$head train.py'\n",
            "--master-addr of torchrun on n1\n  is '', expected 'n1'",
        ),
    ),
    (
        "scripts",
        "expanded_here",
        ('srun x "$SLURM_NODEID"\n', "--node-rank of x on n2\n  is '0', expected '1'"),
    ),
    (
        "scripts",
        "argument_0",
        (
            "awk '!seen[$0]++'; bash -lc 'torchrun \"$@\"' --nnodes=2\n",
            "x on n1 didn't get --nnodes",
        ),
    ),
    (
        "scripts",
        "not_one_argument",
        ("srun bash -c torchrun --nnodes=2 x\n", "x on n1 didn't get --nnodes"),
    ),
    (
        "scripts",
        "not_expanded",
        ("srun x --node-rank='$SLURM_NODEID'\n", "x\n  is '$SLURM_NODEID', expected"),
    ),
    ("scripts", "status_of_a_pipe", ("x 2>&1 | tee log &\nwait -n || exit\n", UNSEEN)),
    ("scripts", "set_in_a_pipe", ("x | while read y; do z=1; done; exit $z\n", UNSEEN)),
    ("scripts", "set_in_the_background", ("x || z=1 &\nwait\nexit $z\n", UNSEEN)),
    (
        "scripts",
        "one_wait",
        ("x &\ny &\nwait -n\nexit $?\n", "hosts that started torchrun\n  has 1 item"),
    ),
    (
        "scripts",
        "script_ends_first",
        ("# wait\nx &\ntorchrun x\n", "the hosts that started torchrun\n  has 1 item"),
    ),
    (
        "scripts",
        "expanded_at_once",
        ('x="cd $PWD && torchrun $@"\n', "x on n1 didn't get --nnodes"),
    ),
    (
        "scripts",
        "last_test",
        ("x\n[[ $y == z ]] && exit 1\n", "the job ended as FAILED (1); last output"),
    ),
    (
        "scripts",
        "all_here",
        (
            "x &\nx &\nwait\n",
            "hosts that start torchrun\n  has 2 items: is ['n1', 'n1'], "
            "expected ['n1', 'n2']",
        ),
    ),
    (
        "scripts",
        "first_of_a_list",
        (
            'mapfile -t hosts < x\nfor host in "$hosts"; do\nssh x\ndone\n',
            "hosts that started torchrun\n  has 1 item",
        ),
    ),
    (
        "scripts",
        "no_shell_there",
        ("ssh x cd y\n", "no host started torchrun; cd: No such file or directory"),
    ),
]
