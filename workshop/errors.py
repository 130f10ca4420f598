"""The one error that a user sees as a sentence instead of a traceback."""

# What ast.parse raises: the last two for a text that is nested too deeply.
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


class UserError(Exception):
    """Bad input or a broken set-up: one sentence naming it and the cure."""

    def __init__(self, sentence: str, exit_status: int = 2):
        super().__init__(sentence)
        self.exit_status = exit_status
