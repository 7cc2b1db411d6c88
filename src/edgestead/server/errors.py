"""Why a server could not start.

Owns  `StartError`.
Asks  nobody.
Tells the command line the one line to print.
Not   refusals of the REST API (`model.errors`).
"""


class StartError(Exception):
    """The server, or a command on its data folder, cannot go on. The message is one line for the operator."""
