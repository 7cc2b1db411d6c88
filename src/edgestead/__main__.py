"""`python -m edgestead` is the command edgecli."""

from edgestead.cli.main import main

if __name__ == "__main__":
    main()
