"""What follows a match: RETURN and WITH as one SQL query over the bindings."""
