"""``python -m exclusivity`` is the command ``erm``, for where the folder of scripts is not on the path."""

import sys

from exclusivity.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
