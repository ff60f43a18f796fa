"""Counts words; installed into an environment of its own for its tests."""


def count(text):
    return len(text.split())
