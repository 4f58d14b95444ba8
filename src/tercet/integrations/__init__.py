"""Scorers and clients of tercet in other libraries, one file each. Each file imports its library."""
