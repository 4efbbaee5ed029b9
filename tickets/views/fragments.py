"""Pages whose live part htmx asks for alone."""


def wants_fragment(request) -> bool:
    """A page asks for its own live part. Whoever comes back to it by the browser's Back button gets
    all of it, as everyone else."""
    return bool(request.htmx) and not request.htmx.history_restore_request
