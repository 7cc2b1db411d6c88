"""`python -m edgestead` is the command `edgecli`.

Owns  nothing but this entrance.
Asks  `cli.main`.
Tells the shell, by the exit code.
Not   any command.
"""

from edgestead.cli.main import main

if __name__ == "__main__":
    main()
