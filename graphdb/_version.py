"""The version, in its one place: ``pyproject.toml`` reads it from here, and so does ``graphdb.__version__``."""

__version__ = "0.1.0"

DISTRIBUTION = "graphdb-duckdb"
"""What the package is called where packages are installed from: ``graphdb`` is somebody else's there."""
