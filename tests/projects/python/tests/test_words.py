import unittest

from words import count


class Words(unittest.TestCase):
    def test_words_are_counted(self):
        self.assertEqual(count("a text  of five words"), 5)
