"""Attempts as processes of this machine. The server's side is here, what runs beside it in `program/`."""
