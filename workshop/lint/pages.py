"""The sections of the workshop's pages that the rules name."""

from .rule import Page

TORCHRUN = "docs/lessons/07_torchrun"
NODES = "docs/lessons/08_many_nodes"
SLURM = "docs/lessons/09_slurm"
PBS = "docs/lessons/10_pbs"
MPI = "docs/lessons/11_mpi_and_containers"

READ_THE_SCRIPT = Page(f"{SLURM}/1_script", "Read the script")
SLURM_MISTAKES = Page(f"{SLURM}/3_look", "Common mistakes")
WHAT_STARTS_WHAT = Page(f"{SLURM}/1_script", "What starts what")
END_THE_JOB = Page(f"{SLURM}/2_end", "End the job when a rank fails")
LONGER = Page(f"{SLURM}/2_end", "Train longer than the time limit")
PBS_MISTAKES = Page(f"{PBS}/4_end", "Common mistakes")
PBS_COPIED = Page(f"{PBS}/3_mistakes", "Five mistakes in copied scripts")
PBS_TASKS = Page(f"{PBS}/1_ten_lines", "What a task finds on another host")
PBS_EVERY_HOST = Page(f"{PBS}/2_every_host", "Grow it to every host")
PBS_ENDS = Page(f"{PBS}/4_end", "How a job ends")
PBS_TEN_LINES = Page(f"{PBS}/1_ten_lines", "Start with ten lines")
NUMBER_RANKS = Page(f"{NODES}/1_number", "Number the ranks of all nodes")
NUMBER_THEM = Page(f"{NODES}/1_number", "Let torchrun number them")
NOT_CONNECTED = Page(f"{NODES}/3_connect", "Find out why two nodes don't connect")
NODES_MISTAKES = Page(f"{NODES}/4_slow_network", "Common mistakes")
START_RANKS = Page(f"{TORCHRUN}/1_start", "Let torchrun start the ranks")
RENDEZVOUS = Page(f"{TORCHRUN}/3_rendezvous", "Choose the rendezvous")
MPIRUN = Page(f"{MPI}/1_mpirun", "Let mpirun start the ranks")
CONTAINERS = Page(f"{MPI}/2_containers", "Take it to a cluster")
PASS_ON = Page(f"{MPI}/1_mpirun", "Pass on the address of rank 0")
FEED_THE_DEVICE = Page("docs/lessons/17_speed/1_data_and_steps", "Feed the device")
CHECKPOINTS = Page(
    "docs/lessons/06_checkpoints/1_save_and_restore",
    "Save what the next step depends on",
)
ADAPT = Page("docs/adapt_to_your_site", "Adapt the job scripts to your site")
LINT_LSF = Page("docs/lint", "What it doesn't know")
LINT_SECRETS = Page("docs/lint", "What other people can read")
