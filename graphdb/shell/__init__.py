"""The command line: arguments, the interactive shell, completion, highlighting, the demo and the doctor."""
