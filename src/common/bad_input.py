"""What every command refuses in one sentence."""

import argparse


class BadInput(argparse.ArgumentTypeError):
    """Input that can't work: one sentence that names it and the cure."""
