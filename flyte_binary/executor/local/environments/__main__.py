"""The program that builds the environment of an image, in the working folder that the server has prepared."""

from __future__ import annotations

import sys
from pathlib import Path

from flyte_binary.executor.local.environments.build import build

sys.exit(build(Path.cwd()))
