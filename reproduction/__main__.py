"""Run the reproduction: ``python -m reproduction``."""

import sys

from reproduction.run import main

sys.exit(main())
