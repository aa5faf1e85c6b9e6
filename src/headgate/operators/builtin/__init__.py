"""Operators of the paper's kinds, ready to use: spatial look-ups, text and image patterns, reasoning.

Each module names its extra library where it needs one and imports it when the first call needs it. The operators that
read a gazetteer, a word list or a rule base are made by a function that takes it, because what they know is the user's.
"""
