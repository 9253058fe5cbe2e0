"""What Flyte is, as values: identifiers, phases, errors, rules. No I/O, no asyncio."""
