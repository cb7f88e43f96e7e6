# Written by tools/generate.py from _async.
"""The asynchronous client."""
