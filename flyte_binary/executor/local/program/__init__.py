"""What runs outside the server: the supervisor of attempts, the fork server, the start of a child.

Loaded by path (`__main__.py`) under interpreters that do not have `flyte_binary` installed, so these
modules import the standard library (and, in `sdk.py`, the SDK) only, import one another relatively,
and stay within Python 3.10. The shape is argued in `docs/adr` ("One small supervisor").

    server ──socket──> supervisor ──socket──> fork server ──fork──> child (a warm attempt)
                            └──────fork and exec──────────────────> child (a cold attempt)
"""
