"""The REMINDER handler."""
