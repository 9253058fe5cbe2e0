"""Images without containers: the layers of an image become a virtual environment, built once and kept.

`recipe.py` and what it needs decide, purely, what is to be done; the program (`__main__.py`, `build.py`) does it as
an ordinary attempt; `library.py` is the folder of what was built; `environments.py` is the server's side.
"""
