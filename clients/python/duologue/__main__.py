"""`python -m duologue`, and the command `duologue` of a package that has the program inside: becomes that program."""

import os
import sys

from ._process import own_binary


def main() -> None:
    """Runs the program of this package in place of Python. The one on the `PATH` may be this command itself."""
    program = own_binary()
    if program is None:
        sys.exit("duologue: this package is without the program, which is not built for this platform. Install it apart.")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
