"""``python -m graphdb`` is the command ``graphdb``."""

from graphdb.cli import main

if __name__ == "__main__":
    main()
