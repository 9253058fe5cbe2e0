"""What the tasks ask for: little, so that many fit beside each other."""

import flyte

SMALL = flyte.Resources(cpu=("40m", "2"), memory=("64Mi", "1Gi"))
