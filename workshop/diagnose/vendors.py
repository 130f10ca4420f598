"""Whose GPUs a log is about, and what AMD's and Intel's call NVIDIA's tools."""

from __future__ import annotations

import re

from workshop.diagnose.logs import Log

OF_AMD = re.compile(
    r"HIP (?:out of memory|error)|\bhipError|\bHSA_(?:STATUS|OVERRIDE)|"
    r"by GPU node-\d|\bMIOpen\b|AMD Instinct|\bamdgpu\b"
)
OF_INTEL = re.compile(
    r"XPU out of memory|level_zero backend|\b(?:UR_RESULT|ZE_RESULT|PI)_ERROR|\bxccl\b"
)
FOR_AMD = {
    "nvidia-smi -q -d ECC": "rocm-smi --showrasinfo all",
    "nvidia-smi topo -p2p r": "rocm-smi --showtopo",
    "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv": (
        "rocm-smi --showpids"
    ),
    "nvidia-smi": "rocm-smi",
    "dmesg | grep Xid": "dmesg | grep amdgpu",
    "Xid lines": "lines of amdgpu",
    "Xid line": "line of amdgpu",
    "CUDA_LAUNCH_BLOCKING=1": "AMD_SERIALIZE_KERNEL=3",
    "compute-sanitizer": "rocgdb",
}
FOR_INTEL = {
    "nvidia-smi -q -d ECC": "xpu-smi health -d 0",
    "nvidia-smi": "xpu-smi",
    "dmesg | grep Xid": "dmesg | grep -E 'xe|i915'",
    "Xid lines": "lines of xe or i915",
    "Xid line": "line of xe or i915",
    "torch.cuda.": "torch.xpu.",
}
ADVICE = re.compile(r"^\s*(?:Cure|To be sure|Ask): ")


def words_of(log: Log) -> dict[str, str]:
    """What to say in place of NVIDIA's words; {} unless the log names other GPUs."""
    for pattern, words in ((OF_AMD, FOR_AMD), (OF_INTEL, FOR_INTEL)):
        if any(pattern.search(line.text) for line in log.lines):
            return words
    return {}


def for_these_gpus(told: list[str], log: Log) -> list[str]:
    """The same lines; the advice names the tools of the GPUs that the log names."""
    words = words_of(log)
    return [in_words(row, words) if ADVICE.match(row) else row for row in told]


def in_words(text: str, words: dict[str, str]) -> str:
    for known, other in words.items():
        text = text.replace(known, other)
    return text
