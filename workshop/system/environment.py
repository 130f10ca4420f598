"""Environment variables of the processes that are started here."""

from __future__ import annotations

# Ranks of checks and of their jobs: one thread each, traffic on loopback.
OF_THE_RANKS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "TORCH_CPP_LOG_LEVEL": "FATAL",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}

# What computes on the CPU alone doesn't see a GPU, of which four ranks would want four.
NO_GPU = dict.fromkeys(
    ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"), ""
)
