"""Exports beside other ways to make the same file."""
