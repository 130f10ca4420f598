"""The sections of the workshop's pages that the rules name."""

from .rule import Page

TORCHRUN = "docs/lessons/07_torchrun"
NODES = "docs/lessons/08_many_nodes"
SLURM = "docs/lessons/09_slurm"
PBS = "docs/lessons/10_pbs"
MPI = "docs/lessons/11_mpi_and_containers"

READ_THE_SCRIPT = Page(SLURM, "Read the script")
SLURM_MISTAKES = Page(SLURM, "Common mistakes")
WHAT_STARTS_WHAT = Page(SLURM, "What starts what")
END_THE_JOB = Page(SLURM, "End the job when a rank fails")
LONGER = Page(SLURM, "Train longer than the time limit")
PBS_MISTAKES = Page(PBS, "Common mistakes")
PBS_COPIED = Page(PBS, "Five mistakes in copied scripts")
PBS_TASKS = Page(PBS, "What a task finds on another host")
PBS_EVERY_HOST = Page(PBS, "Grow it to every host")
PBS_ENDS = Page(PBS, "How a job ends")
PBS_TEN_LINES = Page(PBS, "Start with ten lines")
NUMBER_RANKS = Page(NODES, "Number the ranks of all nodes")
NUMBER_THEM = Page(NODES, "Let torchrun number them")
NOT_CONNECTED = Page(NODES, "Find out why two nodes don't connect")
NODES_MISTAKES = Page(NODES, "Common mistakes")
START_RANKS = Page(TORCHRUN, "Let torchrun start the ranks")
RENDEZVOUS = Page(TORCHRUN, "Choose the rendezvous")
MPIRUN = Page(MPI, "Let mpirun start the ranks")
FEED_THE_DEVICE = Page("docs/lessons/17_speed", "Feed the device")
CHECKPOINTS = Page("docs/lessons/06_checkpoints", "Save what the next step depends on")
ADAPT = Page("docs/adapt_to_your_site", "Adapt the job scripts to your site")
LINT_LSF = Page("docs/lint", "What it doesn't know")
LINT_SECRETS = Page("docs/lint", "What other people can read")
