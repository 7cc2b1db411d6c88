"""Why a server could not start.

Owns  `StartError`.
Not   refusals of the REST API (`model.refusals`).
"""


class StartError(Exception):
    """The server, or a command on its data folder, cannot go on. The message is one line for the operator."""
