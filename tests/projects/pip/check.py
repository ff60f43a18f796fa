import sys

from words import count

assert sys.prefix != sys.base_prefix, "not in an environment"
assert count("a text  of five words") == 5
print("5 words")
