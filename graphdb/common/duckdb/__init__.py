"""DuckDB: the one connection, its transactions and errors, functions of Python's that SQL calls, and interruption."""
