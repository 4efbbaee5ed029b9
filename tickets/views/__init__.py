"""The helpdesk's pages, one file a page."""
