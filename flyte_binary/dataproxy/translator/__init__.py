"""Literals and their types as the JSON of launch forms, and back."""
