"""Which of several ways to run a plan is taken: by estimates first, then by measured times."""
