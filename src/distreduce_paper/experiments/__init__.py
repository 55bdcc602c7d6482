"""One module per table or figure of the paper; each defines EXPERIMENT."""
