"""The report of the reproduction: one page, as Markdown with figures beside it and as a single HTML file."""
