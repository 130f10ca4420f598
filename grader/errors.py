"""The one error that a user sees as a sentence instead of a traceback."""

# What ast.parse raises: the last two for a text that is nested too deeply.
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
# How a look at frames is called if Python's debugger looks, as breakpoint() starts it.
BREAKPOINT = "a breakpoint"


class UserError(Exception):
    """Bad input or a broken set-up: one sentence naming it and the cure."""

    def __init__(self, sentence: str, exit_status: int = 2):
        super().__init__(sentence)
        self.exit_status = exit_status
