"""Measurements of the real server, as a process of its own on loopback, for `docs/performance.md`.

`python -m benchmarks.run` measures everything, `python -m benchmarks.run enqueue start` what is named. Never part of
the tests: a busy machine makes a slow figure, not a wrong program.
"""
