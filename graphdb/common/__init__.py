"""What every layer may import: errors, settings, values, caches, and the connection to DuckDB."""

from graphdb.common.imports import install

install()
