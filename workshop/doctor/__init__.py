"""``workshop doctor``: what works on this machine, and in this job."""
