"""TrackedRunService: runs that a client executes itself and tells us about (`flyte run --tracked`)."""
