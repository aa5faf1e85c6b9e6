"""`python -m headgate.cli`: the same as `headgate`."""

from headgate.cli import main

main(prog_name="headgate")
