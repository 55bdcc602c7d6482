"""Helpers that know nothing of the method: types, threads, numerical and file utilities."""
