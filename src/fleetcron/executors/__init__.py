"""Doing the work of one attempt: Python functions, commands, HTTP calls. Nothing here knows the store or a lease."""
