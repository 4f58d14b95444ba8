"""The files of all-MiniLM-L6-v2, in the folder ``model``. tercet reads them; this package has no code."""
