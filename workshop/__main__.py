"""The ``workshop`` command before anything is imported that may be missing.

It is what ``workshop`` and ``python -m workshop`` start. Its syntax suits Python
3.6, too, so that an old Python gets a sentence, not a SyntaxError.
"""

import sys


def main():
    """Start the command line, or say in one sentence why it can't start; status 3."""
    major, minor = sys.version_info[:2]
    if (major, minor) < (3, 10):
        sys.stderr.write(
            f"workshop: this is Python {major}.{minor}, and the workshop needs 3.10 or "
            "newer: make tour PYTHON=python3.11 creates .venv with another one\n"
        )
        sys.exit(3)
    try:
        from workshop.cli import cli
    except ImportError as error:
        from workshop.versions import missing_module

        sys.stderr.write("workshop: " + missing_module(error) + "\n")
        sys.exit(3)
    cli(prog_name="workshop")


if __name__ == "__main__":
    main()
