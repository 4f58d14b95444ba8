"""The routes: each takes a request apart, calls the service and puts an answer together."""
