"""What the kernel gives: processes, signals, namespaces, temporary folders."""
