"""The depth-first search on a device, a persistent kernel per plan (STMatch §IV to §VII)."""
