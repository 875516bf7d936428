"""IMPORTS: what other schedulers have written down, as documents of ours. Text in, jobs and findings out.

Pure: nothing here reads a clock, a file or a store, imports a foreign module or runs foreign code. Every importer gives
a `Plan`: jobs that can be applied, and a finding for everything that is left out or will behave in another way.
"""
