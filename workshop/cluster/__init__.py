"""Schedulers on this machine: Slurm on nodes, a rehearsal of OpenPBS, checks' jobs."""
