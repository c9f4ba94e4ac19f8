"""The database file: schema, migrations, verification and scratch space."""
