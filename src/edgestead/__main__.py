"""`python -m edgestead` is the command `edgecli`.

Owns  nothing but this entrance.
Not   any command.
"""

from edgestead.cli.main import main

if __name__ == "__main__":
    main()
