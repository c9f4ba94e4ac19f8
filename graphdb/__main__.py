"""``python -m graphdb`` is the command ``graphdb``."""

from graphdb.shell.cli import main

if __name__ == "__main__":
    main()
