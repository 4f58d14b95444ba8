"""Augmented SBERT (Thakur et al., 2021): more training pairs than people have labelled."""
