"""The server: an engine that batches the texts of many requests, and HTTP routes on top of it."""
