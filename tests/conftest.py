"""What all tests rely on: Ctrl-C interrupts.

A shell starts background jobs with SIGINT ignored, and whatever they start inherits
that; programs under test would then not notice the Ctrl-C that a test sends them.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
