"""Indexes in PostgreSQL with the extension pgvector."""
