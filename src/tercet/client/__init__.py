"""Clients of ``tercet serve``. They import no torch: another machine has the models."""
