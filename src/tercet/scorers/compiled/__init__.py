"""Scorers whose transformers OpenVINO runs: they compute what the torch scorers compute, without torch."""
