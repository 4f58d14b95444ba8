"""Bulk jobs: many rows in parts, on this machine or on a Ray cluster, to shards that a restart continues."""
