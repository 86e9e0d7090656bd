"""The byte ledger: how much memory training and serving a large language model needs, term by term.

A module per chapter, a function per formula. Bytes inside; a unit stands in the name where a value is not bytes.
"""
