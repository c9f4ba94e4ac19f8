"""Device code: assembled, compiled, cached, loaded, launched and stopped."""
