"""From a node with known shapes to kernel calls: kernel choice, packed weights, parameters. Nothing here needs
numba.
"""
