"""The EXPORT handler and the purge of expired results."""
