"""`python -m flyte_binary`."""

import sys

from flyte_binary.cli import main

sys.exit(main())
